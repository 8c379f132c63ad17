// SPDX-License-Identifier: MIT
#include "lock/listing.h"

#include <algorithm>
#include <optional>
#include <string>

namespace rlock::lock {
namespace {

constexpr std::size_t kLongestList = std::size_t{32} << 20;
constexpr std::string_view kAskByName = "; ask for locks by their names";

// Bytes of a name in a set, including the node.
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

// The common prefix of the words, because a pattern cannot have alternatives.
std::string pattern_of(std::span<const std::string_view> words) {
  std::string start = std::string(words.front()) + ":";
  for (const std::string_view word : words) {
    start.erase(std::ranges::mismatch(start, std::string(word) + ":").in1, start.end());
  }
  return start + "*";
}

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

std::size_t size_of(const HolderInfo& who) {
  std::size_t size = 0;
  for (const HolderText& said : kHolderTexts) size += (who.*said.text).size();
  return size;
}

std::size_t size_of(const Status& status) {
  std::size_t size = sizeof status + status.name().text().size();
  for (const HolderView& one : status.holders)
    size += sizeof one + one.owner.size() + one.token.size() + size_of(one.who);
  for (const WaiterView& one : status.queue) {
    size += sizeof one + size_of(one.who) + one.who.within.locks().size() * sizeof(AncestorLocks::Locks::value_type);
  }
  for (const std::string& id : status.fair_queue) size += sizeof id + id.size();
  return size;
}

constexpr int kLongestLooks = 60;   // exchanges
constexpr std::size_t kLock = 256;  // about the bytes of a lock, besides its name

// Locks in one exchange. The first lock is asked for alone, so that the server then knows the script.
constexpr std::size_t kAtOnce = 100;

// Looks again, by itself, at a lock that is not a plain one, or for which there was no answer.
Result<Status> of_any_kind(ByScripts& verbs, const LockName& name, Result<Status> plain, const Until& until) {
  const bool done = plain ? plain->state != Status::State::other_kind : is_of_others(plain.error());
  return done ? std::move(plain) : verbs.inspect(name, until, {});
}

// A holder's description may outlive its lock, and the key may hold another program's string by then. If there is a
// queue, a process of rlock waits for it, even if the lock is free and the epoch guard holds grants back.
bool is_ours(const Status& status) {
  if (status.waiting > 0) return status.state != Status::State::other_kind;
  return status.state == Status::State::held && (!status.holder() || !status.holder()->by_set);
}

// True if the user lacks the right to one of the keys.
bool has_keys(redis::Client& client, const LockName& name, const Until& until) {
  const std::string keys[] = {name.text(),       name.token_key(),   name.holder_key(),
                              name.queue_key(),  name.waiters_key(), name.history_key(),
                              name.totals_key(), name.due_key(),     name.once_key()};
  redis::Words command = {"EXISTS"};
  for (const std::string& key : keys) command.push_back(key);
  const auto reply = client.insist(command, until);
  return !reply || reply->as_number() != 0;
}

}  // namespace

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

// The messages of Redis 7.0 and of 7.4.
bool is_of_others(const Error& error) {
  return error.code == Error::Code::denied &&
         (error.message.contains("the keys used as arguments") || error.message.contains("to access a key"));
}

Result<Listing> inspect_one_server(redis::Client& client, milliseconds exchange, const Until& until,
                                   const std::set<LockName>& also) {
  ByScripts verbs(client);
  const Until end = until.at_most(kLongestLooks * exchange);
  constexpr std::string_view kWords[] = {LockName::kHolder, LockName::kQueue};
  std::set<LockName> found = RLOCK_TRY(names_with(client, kWords, kLock, exchange, end));
  found.insert(also.begin(), also.end());
  const std::vector<LockName> names(found.begin(), found.end());
  std::size_t size = names.size() * sizeof(Status);
  Listing all;
  for (std::size_t first = 0, count = 1; first < names.size(); first += count, count = kAtOnce) {
    count = std::min(count, names.size() - first);
    const std::span page(names.data() + first, count);
    auto plain = verbs.inspect_plain(page, end.at_most(exchange));
    for (std::size_t i = 0; i < count; ++i) {
      auto looked = of_any_kind(verbs, page[i], std::move(plain[i]), end.at_most(exchange));
      if (!looked && is_of_others(looked.error())) {
        all.refused.insert(page[i]);
        continue;
      }
      Status status = RLOCK_TRY(std::move(looked));
      if (!is_ours(status) && !also.contains(page[i])) continue;
      size += size_of(status);
      all.locks.push_back(std::move(status));
      RLOCK_TRY(within_list_limits(size, end));
    }
  }
  return all;
}

Result<Listing> inspect_all(Servers& servers, milliseconds exchange, const Until& until,
                            const std::set<LockName>& also) {
  auto all = RLOCK_TRY(servers.quorum() ? servers.quorum()->inspect_all(exchange, until, also)
                                        : inspect_one_server(servers.client(0), exchange, until, also));
  for (Status& status : all.locks) status.asked = servers.display();
  return all;
}

const HolderView* Status::oldest_holder() const {
  const auto before = [](const HolderView& one, const HolderView& other) {
    return one.held_for != other.held_for ? one.held_for > other.held_for : one.owner < other.owner;
  };
  const auto oldest = std::ranges::min_element(holders, before);
  return oldest == holders.end() ? nullptr : &*oldest;
}

bool is_known(Servers& servers, const Status& status, const Until& until) {
  const bool shows = status.state != Status::State::free || !status.token.empty() || status.waiting > 0 ||
                     !status.fair_queue.empty() || status.listening > 0;
  if (shows) return true;
  const auto given = servers.ask_each<bool>(
      [&](redis::Client& client, const Until& end) -> Result<bool> { return has_keys(client, status.name(), end); },
      kLookLimit, until);
  return std::ranges::any_of(given, [](const auto& answer) { return answer.value_or(true); });
}

Result<std::set<LockName>> known_names(Servers& servers, milliseconds exchange, const Until& end) {
  constexpr std::string_view kWords[] = {LockName::kHolder, LockName::kQueue, LockName::kHistory,
                                         LockName::kTotals, LockName::kToken, LockName::kOnce};
  return names_with(servers.client(0), kWords, 0, exchange, end);
}

}  // namespace rlock::lock
