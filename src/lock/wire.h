// SPDX-License-Identifier: MIT
// The words between rlock and the scripts of lua/: named arguments out, typed replies in. This and
// lock/replies alone know the scripts' shapes, which stand at the head of each.
//
// Errors of all: those of redis::Client; protocol with maybe_executed where a reply has not the shape that the script
// promises: the connection is dropped, because nobody knows whether the next reply is the right one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lock/answers.h"
#include "lock/replies.h"
#include "lock/script.h"

namespace rlock::lock::wire {

// None: ask again at once, it takes longer than one call may. `sent`: when the first of these calls was sent.
Result<std::optional<Acquired>> acquire(redis::Client& client, const AcquireRequest& request, TimePoint sent,
                                        Attempts attempts, const Until& until);

struct LockOf {
  Lock lock;
  OwnerId owner;
};
// A result for each, all asked in one exchange.
std::vector<Result<RenewReply>> renew_each(redis::Client& client, std::span<const LockOf> locks, milliseconds lease,
                                           const Until& until);
// A reply for each; those of one attempt are asked in one exchange.
Result<std::vector<RenewReply>> renew(redis::Client& client, std::span<const LockOf> locks, milliseconds lease,
                                      Attempts attempts, const Until& until);

struct ReleaseArguments {
  std::string owner, hold;
  milliseconds keep{};
  std::string request;      // id of this call
  milliseconds remember{};  // for so long it may be sent again; 0: it is sent once
  const HistoryNote* note = nullptr;
};
Result<Released> release(redis::Client& client, const Lock& lock, const ReleaseArguments& arguments, Attempts attempts,
                         const Until& until);

// `note`: null, or an entry of the history.
Result<Released> force_unlock(redis::Client& client, const Lock& lock, const OwnerId& owner, const Until& until,
                              const HistoryNote* note);

// The fencing tokens are those of the holds at least from now on; asked in one exchange. False: one of them is not held.
// Errors: also wrong_kind, where the key of a token holds none.
Result<bool> raise_all(redis::Client& client, std::span<const Hold> holds, const Until& until);

// Gives back what was granted to these requests, in one exchange; whatever it was. Errors: that of the first that could
// not be asked.
Result<void> give_back_all(redis::Client& client, std::span<const AcquireRequest> requests, const Until& until);

// The text as far as others keep it: cut to a size that cannot burden the server.
std::string shortened(const std::string& text);

// A result for each, as plain locks, all asked in one exchange.
std::vector<Result<Status>> inspect_each(redis::Client& client, std::span<const LockName> names, const Until& until);

// As a lock of that layout; State::other_kind: it is not.
Result<Status> inspect(redis::Client& client, const Lock& lock, const Until& until);

}  // namespace rlock::lock::wire
