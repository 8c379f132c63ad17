// SPDX-License-Identifier: MIT
// The name of a lock, and the keys that belong to it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "lock/convention.h"

namespace rlock::lock {

class LockName {
 public:
  // Errors (usage): empty, over 512 bytes, a control character, or braces for which Redisson's rule for
  // companion keys fails: `word:{N}`, or `word:N` when N holds a `{` (RedissonObject.prefixName).
  //   a{b  a}b  {}x   the companions would hash to another slot than N (Redis cluster specification, hash tags)
  //   {x}             its companions are those of the lock x
  //   rlock:holder:…  and the like: it would be a companion itself
  static Result<LockName> parse(std::string_view text);

  // The same lock as `convention`, if there is one, names it, at the key that `form` says; "": at its usual one.
  // Errors (usage): also where the convention needs another form.
  Result<LockName> named_by(const Convention* convention, std::string_view form) const;

  const std::string& text() const { return text_; }  // the lock's key, byte for byte
  // The word that the user has given for it, where a convention has made the key; else the key.
  const std::string& given() const { return given_.empty() ? text_ : given_; }
  const Wakeup& wakeup() const { return wakeup_; }
  const Convention* convention() const { return convention_; }  // null: none
  std::string display() const;                                  // escaped, for messages

  // The key or channel that belongs to this name, by that rule.
  std::string companion(std::string_view word) const;
  // The beginning of the keys that Redisson names by a suffix: {N}, or N where N holds a brace.
  std::string tag() const;
  std::string permits_key() const { return tag() + ":timeout"; }  // of a semaphore
  // The time of a reader's first hold.
  std::string reader_key(const std::string& owner) const { return tag() + ":" + owner + ":rwlock_timeout:1"; }

  std::string token_key() const { return companion(kToken); }
  std::string holder_key() const { return companion(kHolder); }
  std::string control_channel() const { return companion("rlock:control"); }
  std::string queue_key() const { return companion(kQueue); }
  std::string waiters_key() const { return companion("rlock:waiters"); }
  std::string history_key() const { return companion(kHistory); }
  std::string totals_key() const { return companion(kTotals); }
  // The beginning of the channel of one waiter; its id follows.
  std::string grant_channel_prefix() const { return companion("rlock:grant") + ":"; }
  // The beginning of the keys that describe single holders of a shared lock; their ids follow.
  std::string hold_key_prefix() const { return companion(kHold) + ":"; }

  // The holds that still need an entry in the history, and the fields of one such entry (lua/part/due.lua).
  std::string due_key() const { return companion(kHold) + std::string(kDue); }
  std::string entry_key(const std::string& owner) const { return hold_key_prefix() + owner + ":entry"; }

  // The words of keys by which locks can be found. The name that a companion key with that word belongs to; none if the
  // key does not follow the rule.
  static constexpr std::string_view kHolder = "rlock:holder", kQueue = "rlock:queue", kHistory = "rlock:history",
                                    kTotals = "rlock:totals", kToken = "redisson_lock_token", kHold = "rlock:hold";
  // Of the keys with kHold only the one with this end is found: the others are those of single holders.
  static constexpr std::string_view kDue = ":due";
  static std::optional<LockName> of_companion(std::string_view word, std::string_view key);

  // Of the keys.
  auto operator<=>(const LockName& other) const { return text_ <=> other.text_; }
  bool operator==(const LockName& other) const { return text_ == other.text_; }

 private:
  explicit LockName(std::string text) : text_(std::move(text)) {}

  std::string text_, given_;
  Wakeup wakeup_;
  const Convention* convention_ = nullptr;
};

// The owner of a hold: "<uuid>:<number>", the field of the lock's hash as Redisson writes it. Anybody who knows it
// can renew and release. Fresh for every attempt, and dead once a release for it was sent: a delayed
// release of an earlier hold could otherwise end a later one.
class OwnerId {
 public:
  static OwnerId fresh();
  // The same with what the convention of the name wants to be read in front of it. `host`: for people.
  static OwnerId fresh_for(const LockName& name, const std::string& host);

  // Errors (usage): empty, over 512 bytes, a control character.
  static Result<OwnerId> parse(std::string_view text);

  // One that a server has sent: whatever stands there owns the lock. Untrusted text.
  static OwnerId as_stored(std::string text) { return OwnerId(std::move(text)); }

  const std::string& text() const { return text_; }
  // The id of the hold that was granted together with this owner id (lua/verb/acquire.lua).
  std::string first_hold() const { return text_.substr(0, text_.find(':')); }

  bool operator==(const OwnerId&) const = default;

 private:
  explicit OwnerId(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// The locks that our ancestors hold, as RLOCK_HELD carries them: a line "owner name" for each.
class AncestorLocks {
 public:
  // Lines that are not of that form are passed over: the variable is not ours alone.
  static AncestorLocks parse(std::string_view text);

  std::optional<OwnerId> owner_of(const LockName& name) const;
  // Of the locks other than `name`, each once: "a, b", for messages; "": there is none.
  std::string display_without(const LockName& name) const;
  // For a child that `owner` holds `name` for, besides what is here.
  AncestorLocks with(const LockName& name, const OwnerId& owner) const;

  // As the variable carries it.
  std::string text() const { return text_.substr(0, text_.find_last_not_of('\n') + 1); }

 private:
  std::string text_;
};

}  // namespace rlock::lock
