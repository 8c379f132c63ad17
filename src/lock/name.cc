// SPDX-License-Identifier: MIT
#include "lock/name.h"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/date.h"
#include "base/random.h"
#include "base/text.h"

namespace rlock::lock {
namespace {

constexpr std::size_t kLongest = 512;

// The part of a key that decides its slot: what stands between the first { and the next }, unless that
// is empty; else the whole key.
std::string_view hash_tag(std::string_view key) {
  const auto open = key.find('{');
  if (open == std::string_view::npos) return key;
  const auto close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

}  // namespace

Result<LockName> LockName::parse(std::string_view text) {
  const auto bad = [&](const std::string& why) {
    return fail(Error::Code::usage, "bad lock name " + in_quotes(text) + ": " + why);
  };
  if (text.empty()) return bad("it is empty");
  if (text.size() > kLongest) {
    return bad("it has " + std::to_string(text.size()) + " bytes, " + std::to_string(kLongest) + " is the most");
  }
  if (has_control(text)) return bad("it holds a control character");

  LockName name{std::string(text)};
  if (hash_tag(name.companion(kHolder)) != hash_tag(text)) {
    return bad("its braces would send its companion keys to another cluster slot; use a pair with text in it, or none");
  }
  for (const std::string_view word : {"rlock:holder", "rlock:hold", "rlock:queue", "rlock:waiters", "rlock:history",
                                      "rlock:totals", "redisson_lock_token"}) {
    if (text.starts_with(word) && text.substr(word.size()).starts_with(':')) {
      return bad("it would be a key of another lock");
    }
  }
  if (text.front() == '{' && text.find('}') == text.size() - 1) {
    return bad("its companion keys are those of the lock " + in_quotes(text.substr(1, text.size() - 2)));
  }
  return name;
}

Result<LockName> LockName::named_by(const Convention* convention, std::string_view form) const {
  if (form.empty() && convention) form = convention->key;
  if (form.empty()) {
    if (!convention) return *this;
    return fail(Error::Code::usage, "it has no usual key: give one of the form " + std::string(convention->wanted));
  }
  const KeyForm key = RLOCK_TRY(KeyForm::parse(form));
  LockName named = RLOCK_TRY(parse(key.of(text_)));
  named.given_ = text_;
  named.convention_ = convention;
  if (convention) named.wakeup_ = RLOCK_TRY(key.wakeup(*convention, text_));
  return named;
}

std::string LockName::display() const { return escaped(text_); }

std::string LockName::companion(std::string_view word) const { return std::string(word) + ":" + tag(); }

std::string LockName::tag() const { return text_.find('{') == std::string::npos ? "{" + text_ + "}" : text_; }

std::optional<LockName> LockName::of_companion(std::string_view word, std::string_view key) {
  if (!key.starts_with(word)) return {};
  key.remove_prefix(std::min(word.size() + 1, key.size()));
  auto plain = parse(key);
  auto inner = key.size() > 2 && key.starts_with('{') ? parse(key.substr(1, key.size() - 2)) : plain;
  // {x} is never a name, so at most one of the two is.
  if (plain) return *plain;
  if (inner) return *inner;
  return {};
}

OwnerId OwnerId::fresh() { return OwnerId(random_uuid() + ":" + std::to_string(getpid())); }

OwnerId OwnerId::fresh_for(const LockName& name, const std::string& host) {
  OwnerId id = fresh();
  if (!name.convention() || !name.convention()->dated_values) return id;
  std::string readable = host.substr(0, 255);
  std::ranges::replace_if(readable, [](unsigned char c) { return c <= ' ' || c == 127; }, '-');
  return OwnerId("ADDED:" + date_text(since_1970()) + "@" + readable + ":" + id.text_);
}

Result<OwnerId> OwnerId::parse(std::string_view text) {
  if (text.empty()) return fail(Error::Code::usage, "the owner id is empty");
  if (text.size() > kLongest || has_control(text))
    return fail(Error::Code::usage, "not an owner id: " + in_quotes(text));
  return OwnerId(std::string(text));
}

AncestorLocks AncestorLocks::parse(std::string_view text) {
  AncestorLocks held;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    if (OwnerId::parse(line.substr(0, blank)) && LockName::parse(line.substr(blank + 1))) {
      held.text_.append(line).append("\n");
    }
  }
  return held;
}

std::optional<OwnerId> AncestorLocks::owner_of(const LockName& name) const {
  // The last one counts: the innermost ancestor.
  std::optional<OwnerId> found;
  for (std::size_t start = 0; start < text_.size();) {
    const auto end = text_.find('\n', start);
    const std::string_view line = std::string_view(text_).substr(start, end - start);
    const auto blank = line.find(' ');
    if (line.substr(blank + 1) == name.text()) found = *OwnerId::parse(line.substr(0, blank));
    start = end + 1;
  }
  return found;
}

std::string AncestorLocks::display_without(const LockName& name) const {
  std::set<LockName> others;
  for (std::size_t start = 0; start < text_.size();) {
    const auto end = text_.find('\n', start);
    const auto blank = text_.find(' ', start);
    auto other = LockName::parse(std::string_view(text_).substr(blank + 1, end - blank - 1));
    if (other && *other != name) others.insert(*std::move(other));
    start = end + 1;
  }
  std::string all;
  for (const LockName& other : others) all += (all.empty() ? "" : ", ") + other.display();
  return all;
}

AncestorLocks AncestorLocks::with(const LockName& name, const OwnerId& owner) const {
  AncestorLocks held = *this;
  held.text_ += owner.text() + " " + name.text() + "\n";
  return held;
}

}  // namespace rlock::lock
