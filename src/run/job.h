// SPDX-License-Identifier: MIT
// The command to be run, its locks, and how.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "lock/lease.h"
#include "lock/servers.h"
#include "run/command.h"
#include "run/inherited.h"
#include "run/life.h"

namespace rlock::run {

// The fate of the lock.
struct LockEvent {
  enum class Kind { lost, released } kind = Kind::released;
  std::string why;         // lost
  std::size_t hold = 0;    // the index of the one that it is about
  milliseconds free_in{};  // released: how long it is kept without us, --min-hold
};

struct Job {
  Command command;
  std::vector<lock::Hold> holds;  // of one lease; at least one. Before the grant: as they will be, without a token
  lock::LeaseTiming timing;
  milliseconds exchange{};  // for the release
  bool renew = true;        // false: the tree is ended before the first lease is
  std::optional<milliseconds> max_hold;
  milliseconds min_hold{};
  Leftovers leftovers = Leftovers::kill;
  std::string leftovers_kept_by;  // the option with which they are not ended, for messages
  bool isolate = false;
  Hooks hooks;
  Inherited inherited;  // what guards let go of
  // The job as the history shows it; none: no history is written. It was asked for the lock at that time.
  std::optional<lock::HolderInfo> in_history;
  TimePoint asked_at{};
  std::function<void(const LockEvent&)> report;

  std::string name() const { return display(holds); }
  LifePlan plan() const {
    return {.on_acquire = !hooks.on_acquire.empty(),
            .on_release = !hooks.on_release.empty(),
            .hook_limit = hooks.limit,
            .grace = timing.kill_at - timing.terminate_at,
            .max_hold = max_hold,
            .leftovers = leftovers};
  }
};

// A job, and what its guards have for it.
struct JobContext {
  const Job& job;
  lock::Servers& client;
  SignalBlock& signals;
  GuardState& shared;
};

}  // namespace rlock::run
