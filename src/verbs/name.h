// SPDX-License-Identifier: MIT
// The name of a lock, the keys that belong to it, and the ids of its owners.
#pragma once

#include <optional>
#include <vector>

#include "verbs/convention.h"

namespace rlock::lock {

// The record of the epoch guard (verbs/epoch.h), one on each server; no lock can have this name.
inline constexpr std::string_view kEpochKey = "rlock:epoch";

class LockName {
 public:
  // Errors (usage): the name is empty, longer than 512 bytes, or has a control character; or it breaks Redisson's rule
  // for companion keys, `word:{N}`, or `word:N` if N contains a `{` (RedissonObject.prefixName):
  //   a{b  a}b  {}x   the companion keys would hash to another slot than N (Redis cluster specification, hash tags)
  //   {x}             has the same companion keys as the lock x
  //   rlock:holder:…  and the like are companion keys themselves
  static Result<LockName> parse(std::string_view text);

  // The lock that `convention` (or nobody, if null) gives this name, at the key that `form` determines; "" means the
  // usual form. Errors (usage): bad forms, and forms that the convention cannot use.
  Result<LockName> named_by(const Convention* convention, std::string_view form) const;

  const std::string& text() const { return text_; }  // the lock's key, byte for byte
  // What the user typed, if a convention made the key from it; otherwise the key.
  const std::string& given() const { return given_.empty() ? text_ : given_; }
  const Wakeup& wakeup() const { return wakeup_; }
  const Convention* convention() const { return convention_; }  // null: none
  std::string display() const;                                  // escaped, for messages

  // The companion key or channel with this word.
  std::string companion(std::string_view word) const;
  // The prefix of the keys that Redisson names by a suffix: {N}, or N if N contains a brace.
  std::string tag() const;
  std::string permits_key() const { return tag() + ":timeout"; }  // of a semaphore
  // Holds the time of a reader's first hold.
  std::string reader_key(const std::string& owner) const { return tag() + ":" + owner + ":rwlock_timeout:1"; }

  std::string pool_key() const { return companion("rlock:pool"); }  // of a semaphore: who has which slot

  std::string token_key() const { return companion(kToken); }
  std::string holder_key() const { return companion(kHolder); }
  std::string control_channel() const { return companion("rlock:control"); }
  std::string queue_key() const { return companion(kQueue); }
  std::string waiters_key() const { return companion("rlock:waiters"); }
  std::string history_key() const { return companion(kHistory); }
  std::string totals_key() const { return companion(kTotals); }
  std::string once_key() const { return companion(kOnce); }
  // A waiter's id follows.
  std::string grant_channel_prefix() const { return companion("rlock:grant") + ":"; }
  // The keys that describe the holders of a shared lock; a holder's id follows.
  std::string hold_key_prefix() const { return companion(kHold) + ":"; }

  // The holds that still need an entry in the history, and the fields of one such entry (lua/part/due.lua).
  std::string due_key() const { return companion(kHold) + std::string(kDue); }
  std::string entry_key(const std::string& owner) const { return hold_key_prefix() + owner + ":entry"; }

  // Words of companion keys by which locks can be found.
  static constexpr std::string_view kHolder = "rlock:holder", kQueue = "rlock:queue", kHistory = "rlock:history",
                                    kTotals = "rlock:totals", kToken = "redisson_lock_token", kHold = "rlock:hold",
                                    kOnce = "rlock:once";
  // Of the keys with kHold, only the one with this suffix leads to a lock; the others belong to single holders.
  static constexpr std::string_view kDue = ":due";
  // The name that a companion key with that word belongs to; none if the key breaks the rule.
  static std::optional<LockName> of_companion(std::string_view word, std::string_view key);

  // Compares keys.
  auto operator<=>(const LockName& other) const { return text_ <=> other.text_; }
  bool operator==(const LockName& other) const { return text_ == other.text_; }

 private:
  explicit LockName(std::string text) : text_(std::move(text)) {}

  std::string text_, given_;
  Wakeup wakeup_;
  const Convention* convention_ = nullptr;
};

// The owner of a hold: "<uuid>:<number>", which is the field of the lock's hash, as in Redisson. It is all that a
// client needs to renew and to release. Every attempt uses a new id, and none is used again after a release: a delayed
// release of an earlier hold could otherwise end a later one.
class OwnerId {
 public:
  static OwnerId fresh();
  // The same, with the prefix that the name's convention expects. `host` is for people.
  static OwnerId fresh_for(const LockName& name, const std::string& host);
  // For an owner that takes so many slots of a semaphore: if several, the id says how many (lua/layout/semaphore.lua).
  static OwnerId fresh_for_slots(int taken);
  // How many that are.
  int slots() const;

  // Errors (usage): the text is empty, longer than 512 bytes, or has a control character.
  static Result<OwnerId> parse(std::string_view text);

  // An id that a server has sent: any untrusted text.
  static OwnerId as_stored(std::string text) { return OwnerId(std::move(text)); }

  const std::string& text() const { return text_; }
  // The id of the hold that was granted together with this owner id (lua/verb/acquire.lua).
  std::string first_hold() const { return text_.substr(0, text_.find(':')); }

  bool operator==(const OwnerId&) const = default;

 private:
  explicit OwnerId(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// The locks that this process's ancestors hold, from the variable RLOCK_HELD: a line "owner name" for each.
class AncestorLocks {
 public:
  // Ignores other lines, because programs other than rlock can set the variable.
  static AncestorLocks parse(std::string_view text);

  // The innermost ancestor that holds `name`.
  std::optional<OwnerId> owner_of(const LockName& name) const;
  // The locks other than `name`, each once: "a, b", for messages; "" if there are none.
  std::string display_without(const LockName& name) const;
  // With one more lock, for the environment of a child.
  AncestorLocks with(const LockName& name, const OwnerId& owner) const;

  // The most bytes of a waiter's record that list its locks: sixteen with the longest names, or more than a hundred
  // with usual ones.
  static constexpr std::size_t kLongestText = std::size_t{16} * 576;

  std::string text() const;  // for the variable
  // The same without the outermost ones that do not fit into so many bytes.
  std::string text_of_inner(std::size_t most) const;

  using Locks = std::vector<std::pair<OwnerId, LockName>>;
  const Locks& locks() const { return locks_; }

 private:
  Locks locks_;  // the innermost last
};

}  // namespace rlock::lock
