// SPDX-License-Identifier: MIT
// Acquires locks for run and acquire.
#pragma once

#include "lock/acquire.h"
#include "options/options.h"
#include "show/json.h"

namespace rlock::cli {

// What run and acquire add to their options.
struct Wanted {
  lock::HolderInfo holder;
  milliseconds lease{};
  milliseconds renew_every{};            // while it waits for further locks
  int interrupt = -1;                    // a descriptor that ends the wait when it becomes readable
  std::optional<lock::OwnerId> owner{};  // use the holds that this owner has, instead of acquiring new ones
  std::optional<lock::Once> once{};      // for one lock
  lock::AtFront at_front{};
};

// Acquires all of the locks or none, and reports who holds them while it waits. There are no holds, after a report of
// the reason, if somebody else holds a lock when the wait is over; the caller reports what has already succeeded.
// Errors: those of lock::acquire_all; wrong_kind if a name is in use for something else, or with another number of
// slots; usage for a reader that wants to write, and for options that do not work with several servers; interrupted.
// With an owner: also wrong_kind if it does not hold one, or if another command uses that hold.
Result<lock::Taken> acquire_and_report(lock::Servers& servers, const LockingOptions& options, const Wanted& wanted,
                                       const Events& events);

// The error (usage) of an option that does not work with several servers. `why`: the option, and the reason.
std::unexpected<Error> unfit_for_quorum(std::string_view why);

// The exit status after a refusal: that of -E, unless the job would wait for its own hold, or the epoch guard holds it
// back, because then nobody does the work. Such refusals are reported even with -E 0.
int status_of(const lock::Acquired& refusal, int conflict_status);

}  // namespace rlock::cli
