// SPDX-License-Identifier: MIT
// Taking a lock as run and acquire both do it.
#pragma once

#include <optional>

#include "base/log.h"
#include "cli/events.h"
#include "cli/options.h"
#include "lock/several.h"
#include "run/signals.h"

namespace rlock::cli {

// Takes the locks, all or none, or waits for them, with lines about who holds them; those that are held while another
// is waited for are renewed every `renew_every`; `at_front` as in lock/wait.h. Empty: one of them is held by
// somebody else and the wait is over; that has been said, and options.conflict_status is the status.
// Errors: those of lock::acquire_all; wrong_kind if a name is in use for something else, or with another number of
// slots; usage for a reader that wants to become a writer; interrupted.
Result<std::vector<lock::Hold>> take(redis::Client& client, const std::vector<lock::AcquireRequest>& requests,
                                     milliseconds renew_every, const WaitOptions& wait, const CommonOptions& common,
                                     const run::SignalBlock& signals, const Events& events,
                                     lock::AtFront at_front = {});

// The locks that this process runs under: RLOCK_HELD.
lock::HeldLocks held_by_ancestors();

// This process as others shall see it. `command` is what it runs.
lock::Holder describe_self(std::string command, std::string reason);
// The same for one who is asked to stop: "alice@ci-7 (with)".
std::string asker(std::string_view with);

// Asks a verb for a lock of which only the name is known: as for a plain one, as most are, and again as for what it
// turns out to be.
template <class Verb>
auto whatever_it_is(const lock::LockName& name, Verb verb) {
  auto result = verb(lock::Lock{name});
  const auto layout = result ? result->instead.layout() : std::nullopt;
  return layout ? verb(lock::Lock{name, *layout}) : result;
}

// Does something for each name, also if it has failed for another; then the first error is that of all, and the others
// have been reported.
template <class Action>
Result<int> each(const std::vector<lock::LockName>& names, Action action) {
  Result<int> all = kDone;
  for (const lock::LockName& name : names) {
    Result<void> done = action(name);
    if (done) continue;
    if (!all) log::error(all.error().message);
    all = std::unexpected(std::move(done).error());
  }
  return all;
}

// After an Error::Code::interrupted: the signal that has arrived.
int ending_signal(run::SignalBlock& signals);

}  // namespace rlock::cli
