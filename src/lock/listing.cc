// SPDX-License-Identifier: MIT
#include "lock/listing.h"

#include <algorithm>
#include <optional>
#include <string>

namespace rlock::lock {
namespace {

constexpr std::size_t kLongestList = std::size_t{32} << 20;
constexpr std::string_view kAskByName = "; ask for locks by their names";

// Of a name in a set: with its place in the tree.
constexpr std::size_t kName = sizeof(LockName) + 4 * sizeof(void*);

std::optional<LockName> name_in(std::span<const std::string_view> words, std::string_view key) {
  for (const std::string_view word : words) {
    if (!key.starts_with(word) || key.find(':', word.size()) != word.size()) continue;
    if (word == LockName::kHold) {
      if (!key.ends_with(LockName::kDue)) return {};
      key.remove_suffix(LockName::kDue.size());
    }
    return LockName::of_companion(word, key);
  }
  return {};
}

// A pattern has no alternatives: it is what all of the words begin with.
std::string pattern_of(std::span<const std::string_view> words) {
  std::string begin = std::string(words.front()) + ":";
  for (const std::string_view word : words) {
    begin.erase(std::ranges::mismatch(begin, std::string(word) + ":").in1, begin.end());
  }
  return begin + "*";
}

// Adds the names that one server keeps. `each`: as in names_with.
Result<void> add_names(redis::Client& client, std::span<const std::string_view> words, std::size_t each,
                       milliseconds exchange, const Until& end, std::set<LockName>& names, std::size_t& size) {
  const std::string pattern = pattern_of(words);
  std::string cursor = "0";
  do {
    const redis::Reply reply =
        RLOCK_TRY(client.insist({"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"}, end.at_most(exchange)));
    cursor = reply.at(0).as_text();
    if (cursor.empty()) return client.unexpected_reply("SCAN");
    for (const redis::Reply& key : reply.at(1).elements) {
      auto name = name_in(words, key.as_text());
      if (name && names.insert(std::move(*name)).second) size += kName + each + key.text.size();
    }
    RLOCK_TRY(within_list_limits(size, end));
  } while (cursor != "0");
  return {};
}

}  // namespace

Result<std::set<LockName>> names_with(redis::Client& client, std::string_view word, std::size_t each,
                                      milliseconds exchange, const Until& end) {
  return names_with(client, std::span(&word, 1), each, exchange, end);
}

Result<std::set<LockName>> names_with(redis::Client& client, std::span<const std::string_view> words, std::size_t each,
                                      milliseconds exchange, const Until& end) {
  std::set<LockName> names;
  std::size_t size = 0;
  auto parts = RLOCK_TRY(client.parts(end.at_most(exchange)));
  for (redis::Client& part : parts) RLOCK_TRY(add_names(part, words, each, exchange, end, names, size));
  if (parts.empty()) RLOCK_TRY(add_names(client, words, each, exchange, end, names, size));
  return names;
}

Result<void> within_list_limits(std::size_t size, const Until& end) {
  if (size > kLongestList) {
    return fail(Error::Code::protocol, "the list of locks takes more than " + std::to_string(kLongestList >> 20) +
                                           " MiB" + std::string(kAskByName));
  }
  if (end.over()) {
    return fail(Error::Code::unavailable, "looking at all keys takes too long" + std::string(kAskByName));
  }
  return {};
}

// The texts are those of Redis 7.0 and of 7.4.
bool is_of_others(const Error& error) {
  return error.code == Error::Code::denied && (error.message.find("the keys used as arguments") != std::string::npos ||
                                               error.message.find("to access a key") != std::string::npos);
}

}  // namespace rlock::lock
