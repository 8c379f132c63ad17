// SPDX-License-Identifier: MIT
// Acquiring locks as run and acquire both do it.
#pragma once

#include <vector>

#include "show/json.h"
#include "options/options.h"
#include "lock/quorum.h"
#include "run/signals.h"

namespace rlock::cli {

// Acquires the locks, all or none, or waits for them, with lines about who holds them; those that are held while
// another is waited for are renewed every `renew_every`; `at_front` as in lock/wait.h. Empty: one of them is held by
// somebody else and the wait is over; that has been said, and options.wait.conflict_status is the status.
// Errors: those of lock::acquire_all; wrong_kind if a name is in use for something else, or with another number of
// slots; usage for a reader that wants to become a writer; interrupted.
Result<std::vector<lock::Hold>> acquire_and_report(lock::Servers& client,
                                                   const std::vector<lock::AcquireRequest>& requests,
                                                   milliseconds renew_every, const LockingOptions& options,
                                                   const run::SignalBlock& signals, const Events& events,
                                                   lock::AtFront at_front = {});

}  // namespace rlock::cli
