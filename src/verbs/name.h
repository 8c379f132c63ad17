// SPDX-License-Identifier: MIT
// The name of a lock, the keys that belong to it, and the ids of its owners.
#pragma once

#include <algorithm>
#include <span>

#include "base/clock.h"
#include "base/text.h"
#include "lua/names.h"

namespace rlock::lock {

// A key or channel beside a lock, `word:{N}`, which `:` and more follows if there are several; and what TYPE says of a
// key, "channel", or "-": only Redisson uses it. Rights, type checks and the refusal of names use the list of all of
// them, lua::kCompanions, which comes from lua/01_request.lua; tests compare the documents with it.
using lua::Companion;
constexpr bool is_channel(const Companion& one) { return one.type == "channel"; }
constexpr bool is_key(const Companion& one) { return one.type != "-" && !is_channel(one); }

class LockName {
 public:
  // Errors (usage): the name is empty, longer than 512 bytes, or has a control character; or it breaks Redisson's rule
  // for companion keys, `word:{N}`, or `word:N` if N contains a `{` (RedissonObject.prefixName):
  //   a{b  a}b  {}x   the companion keys would hash to another slot than N (Redis cluster specification, hash tags)
  //   {x}             has the same companion keys as the lock x
  //   rlock:holder:…, {x}:timeout and the like are companions themselves
  static Result<LockName> parse(std::string_view text);

  const std::string& text() const { return text_; }  // the lock's key, byte for byte
  std::string display() const;                       // escaped, for messages

  std::string companion(const Companion& which) const;
  // The prefix of the keys that Redisson names by a suffix: {N}, or N if N contains a brace.
  std::string tag() const;
  // What follows the tag: of a semaphore's permits; of a reader's holds, in front of their numbers.
  static constexpr std::string_view kPermits = ":timeout", kReader = ":rwlock_timeout:";
  std::string permits_key() const { return tag() + std::string(kPermits); }
  // Holds the time of a reader's first hold.
  std::string reader_key(const std::string& owner) const { return tag() + ":" + owner + std::string(kReader) + "1"; }

  std::string pool_key() const { return companion(lua::kPool); }  // of a semaphore: who has which slot

  std::string token_key() const { return companion(lua::kToken); }
  std::string holder_key() const { return companion(lua::kHolder); }
  std::string control_channel() const { return companion(lua::kControl); }
  std::string wanted_channel() const { return control_channel() + ":wanted"; }
  std::string queue_key() const { return companion(lua::kQueue); }
  std::string waiters_key() const { return companion(lua::kWaiters); }
  std::string history_key() const { return companion(lua::kHistory); }
  std::string totals_key() const { return companion(lua::kTotals); }
  std::string once_key() const { return companion(lua::kOnce); }
  // A waiter's id follows.
  std::string grant_channel_prefix() const { return companion(lua::kGrant) + ":"; }
  // The keys that describe the holders of a shared lock; a holder's id follows.
  std::string hold_key_prefix() const { return companion(lua::kHold) + ":"; }

  // The holds that still need an entry in the history, and the fields of one such entry (lua/features/08_history.lua).
  std::string due_key() const { return companion(lua::kHold) + std::string(kDue); }
  std::string entry_key(const std::string& owner) const { return hold_key_prefix() + owner + ":entry"; }

  // Among the keys with rlock:hold, only the one with this suffix leads to a lock; the others belong to single holders.
  static constexpr std::string_view kDue = ":due";
  // The name that this key belongs to; none if it is another key.
  static std::optional<LockName> of_companion(const Companion& which, std::string_view key);

  // Compares keys.
  auto operator<=>(const LockName& other) const = default;

 private:
  explicit LockName(std::string text) : text_(std::move(text)) {}

  std::string text_;
};

// The most slots that an owner may take (lua/06_semaphore.lua).
inline constexpr int kMostTaken = 64;

// The owner of a hold: "<uuid>:<number>", which is the field of the lock's hash, as in Redisson. It is all that a
// client needs to renew and to release. Every attempt uses a new id, and none is used again after a release: a delayed
// release of an earlier hold could otherwise end a later one.
class OwnerId {
 public:
  static OwnerId fresh();
  // For an owner that takes so many slots of a semaphore: if several, the id says how many (lua/06_semaphore.lua).
  static OwnerId fresh_for_slots(int taken);
  // How many that are.
  int slots() const;

  // Errors (usage): the text is empty, longer than 512 bytes, or has a control character.
  static Result<OwnerId> parse(std::string_view text);

  // An id that a server has sent: any untrusted text.
  static OwnerId as_stored(std::string text) { return OwnerId(std::move(text)); }

  const std::string& text() const { return text_; }
  // The id of the hold that was granted together with this owner id (lua/10_acquire.lua).
  std::string first_hold() const { return text_.substr(0, text_.find(':')); }
  // As rlock's own ids do, and hardly any value of another program.
  bool begins_like_uuid() const { return text_.find(':') == 36; }

  bool operator==(const OwnerId&) const = default;

 private:
  explicit OwnerId(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

// The locks that this process's ancestors hold, from the variable RLOCK_HELD: a line "owner name" for each.
class AncestorLocks {
 public:
  // Ignores other lines and ids, because programs other than rlock can set the variable, and an application's hash may
  // have any field.
  static AncestorLocks parse(std::string_view text);

  // The innermost ancestor that holds `name`.
  std::optional<OwnerId> owner_of(const LockName& name) const;
  // The locks other than `name`, each once: "a, b", for messages; "" if there are none.
  std::string display_without(const LockName& name) const;
  // With one more lock, for the environment of a child.
  AncestorLocks with(const LockName& name, const OwnerId& owner) const;

  std::string text() const;  // for the variable

 private:
  std::vector<std::pair<OwnerId, LockName>> locks_;  // the innermost last
};

}  // namespace rlock::lock
