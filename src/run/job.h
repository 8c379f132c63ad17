// SPDX-License-Identifier: MIT
// A command to run, its locks, and its options.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "lock/servers.h"
#include "run/command.h"
#include "run/inherited.h"
#include "run/life.h"
#include "verbs/lease.h"

namespace rlock::run {

// What happened to a lock.
struct LockEvent {
  enum class Kind { lost, released } kind = Kind::released;
  std::string why;       // if lost
  std::size_t hold = 0;  // its index
  // If released: how long --min-hold still keeps it; none: it is left to its owner.
  std::optional<milliseconds> free_in{};
  std::optional<bool> remembered{};  // if released: whether the success of the command is; none: there is none to be
};

struct Job {
  Command command;
  std::vector<lock::Hold> holds;  // at least one, all with the same lease; before the grant they have no token
  lock::LeaseTiming timing;
  milliseconds exchange{};  // the time limit of the release
  bool renew = true;        // false: the tree is ended before the first lease ends
  std::optional<milliseconds> max_hold;
  milliseconds min_hold{};
  Leftovers leftovers = Leftovers::kill;
  std::string leftovers_kept_by;  // the option that would keep them, for messages
  bool isolate = false;
  Hooks hooks;
  Inherited inherited;  // what the guards close
  // What the history says about the job, and when it asked for the lock. None: no history is written.
  std::optional<lock::HolderInfo> in_history;
  TimePoint asked_at{};
  // The owner has acquired the locks before (rlock run --owner), and the job has one more hold of each.
  enum class Borrowed {
    no,
    kept,      // at the end the owner goes on holding them, for `left_to_owner`
    released,  // at the end the owner's first hold is released, too
  } borrowed = Borrowed::no;
  milliseconds left_to_owner{};          // 0: for as long as they were granted
  std::optional<lock::Success> success;  // what the release records if the command succeeds
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

// A job, and what its guards use for it.
struct JobContext {
  const Job& job;
  lock::Servers& client;
  SignalBlock& signals;
  GuardState& shared;
};

}  // namespace rlock::run
