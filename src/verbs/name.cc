// SPDX-License-Identifier: MIT
#include "verbs/name.h"

#include <unistd.h>

#include <charconv>
#include <ranges>
#include <set>

#include "base/secret.h"

namespace rlock::lock {
namespace {

constexpr std::size_t kLongest = 512;
// Where the version of a UUID stands, and the number of slots of an owner of several.
constexpr std::size_t kVersion = 14, kSlots = 32;

// Whether another lock can have a key or channel like this, `word:{N}` or, as Redisson adds a suffix, `{N}:suffix`.
bool is_companion(std::string_view text) {
  const auto begins = [&](const Companion& one) {
    return text.starts_with(one.word) && text.substr(one.word.size()).starts_with(':');
  };
  const bool has_suffix = text.ends_with(LockName::kPermits) || text.contains(LockName::kReader);
  return std::ranges::any_of(lua::kCompanions, begins) || (text.contains('{') && has_suffix);
}

}  // namespace

Result<LockName> LockName::parse(std::string_view text) {
  const auto bad = [&](const std::string& why) {
    return fail(Error::Code::usage, "bad lock name " + in_quotes(text) + ": " + why);
  };
  if (text.empty()) return bad("it is empty");
  if (text.size() > kLongest) {
    return bad("it has " + std::to_string(text.size()) + " bytes; the limit is " + std::to_string(kLongest));
  }
  if (has_control(text)) return bad("it contains a control character");

  LockName name{std::string(text)};
  if (hash_tag(name.holder_key()) != hash_tag(text)) {
    return bad(
        "its braces would put its companion keys into another cluster slot; use one pair with text between, or none");
  }
  if (is_companion(text)) return bad("it would be a key or channel of another lock");
  if (text == lua::kEpoch) return bad("it would be the key of the epoch guard");
  if (text.front() == '{' && text.find('}') == text.size() - 1) {
    return bad("it would share its companion keys with the lock " + in_quotes(text.substr(1, text.size() - 2)));
  }
  return name;
}

std::string LockName::display() const { return escaped(text_); }

std::string LockName::companion(const Companion& which) const { return std::string(which.word) + ":" + tag(); }

std::string LockName::tag() const { return !text_.contains('{') ? "{" + text_ + "}" : text_; }

std::optional<LockName> LockName::of_companion(const Companion& which, std::string_view key) {
  const std::string start = std::string(which.word) + ":";
  if (!key.starts_with(start)) return {};
  key.remove_prefix(start.size());
  if (which == lua::kHold) {
    if (!key.ends_with(kDue)) return {};
    key.remove_suffix(kDue.size());
  }
  auto plain = parse(key);
  auto inner = key.size() > 2 && key.starts_with('{') ? parse(key.substr(1, key.size() - 2)) : plain;
  // {x} is never a name, so at most one of the two is.
  if (!plain) plain = std::move(inner);
  return plain ? std::optional(*std::move(plain)) : std::nullopt;
}

OwnerId OwnerId::fresh() { return OwnerId(random_uuid() + ":" + std::to_string(getpid())); }

OwnerId OwnerId::fresh_for_slots(int taken) {
  OwnerId id = fresh();
  if (taken == 1) return id;
  constexpr const char* kDigits = "0123456789abcdef";
  id.text_[kVersion] = '8';
  id.text_.replace(kSlots, 4, {'0', '0', kDigits[taken / 16 % 16], kDigits[taken % 16]});
  return id;
}

int OwnerId::slots() const {
  if (text_.size() < kSlots + 4 || text_[kVersion] != '8') return 1;
  const char* const end = text_.data() + kSlots + 4;
  int number = 0;
  const auto read = std::from_chars(end - 4, end, number, 16);
  return read.ptr == end && number <= kMostTaken ? std::max(number, 1) : 1;
}

Result<OwnerId> OwnerId::parse(std::string_view text) {
  if (text.empty()) return fail(Error::Code::usage, "the owner id is empty");
  if (text.size() > kLongest || has_control(text))
    return fail(Error::Code::usage, "not an owner id: " + in_quotes(text));
  return OwnerId(std::string(text));
}

AncestorLocks AncestorLocks::parse(std::string_view text) {
  AncestorLocks held;
  for (const auto part : std::views::split(text, '\n')) {
    const std::string_view line(part.begin(), part.end());
    const auto blank = line.find(' ');
    if (blank == line.npos) continue;
    auto owner = OwnerId::parse(line.substr(0, blank));
    auto name = LockName::parse(line.substr(blank + 1));
    if (owner && owner->begins_like_uuid() && name) held.locks_.emplace_back(*std::move(owner), *std::move(name));
  }
  return held;
}

std::optional<OwnerId> AncestorLocks::owner_of(const LockName& name) const {
  for (const auto& [owner, held] : std::views::reverse(locks_)) {
    if (held == name) return owner;
  }
  return {};
}

std::string AncestorLocks::display_without(const LockName& name) const {
  std::set<LockName> others;
  for (const auto& [owner, held] : locks_) others.insert(held);
  others.erase(name);
  return joined(others, ", ", &LockName::display);
}

AncestorLocks AncestorLocks::with(const LockName& name, const OwnerId& owner) const {
  AncestorLocks held = *this;
  held.locks_.emplace_back(owner, name);
  return held;
}

std::string AncestorLocks::text() const {
  return joined(locks_, "\n", [](const auto& one) { return one.first.text() + " " + one.second.text(); });
}

}  // namespace rlock::lock
