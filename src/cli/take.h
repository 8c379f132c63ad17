// SPDX-License-Identifier: MIT
// Taking a lock as run and acquire both do it.
#pragma once

#include <optional>

#include "cli/events.h"
#include "cli/options.h"
#include "lock/wait.h"
#include "run/signals.h"

namespace rlock::cli {

// Takes the lock or waits for it, with a line about the holder on a terminal. None: somebody else holds it and
// the wait is over; that has been said, and options.conflict_status is the status.
// Errors: those of lock::acquire_or_wait; wrong_kind if the name is in use for something else; interrupted.
Result<std::optional<lock::Hold>> take(redis::Client& client, lock::AcquireRequest request, const WaitOptions& wait,
                                       const CommonOptions& common, const run::SignalBlock& signals,
                                       const Events& events);

// The locks that this process runs under: RLOCK_HELD.
lock::HeldLocks held_by_ancestors();

// This process as others shall see it. `command` is what it runs.
lock::Holder describe_self(std::string command, std::string reason);

// After an Error::Code::interrupted: the signal that has arrived.
int ending_signal(run::SignalBlock& signals);

}  // namespace rlock::cli
