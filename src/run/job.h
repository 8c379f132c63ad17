// SPDX-License-Identifier: MIT
// Running a command under a lock.
//
// Three processes (their names are those of the code):
//   frontend  the process that calls run_job, the pid that the user sees: signals and job control; no Redis, once the
//             monitor has the connection
//   monitor   its child, in a session of its own, or only in a process group of its own for hooks at a shell: renews,
//             watches the tree, releases
//   command   the monitor's child, in the frontend's process group: for the terminal as if unwrapped
// Frontend and monitor are the guards: both are subreapers and both kill the tree by the deadline in memory
// that they share. If either dies, the other ends the tree at once. Monitor and command may be there before the lock
// is ours: see run/guards.h.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "lock/lease.h"
#include "lock/verbs.h"
#include "redis/client.h"
#include "run/command.h"
#include "run/hook.h"
#include "run/inherited.h"
#include "run/shared.h"
#include "run/signals.h"

namespace rlock::run {

// What to do with processes that the command leaves behind.
enum class Leftovers {
  kill,    // they are ended, then the lock is released
  wait,    // the lock is kept until they have ended
  ignore,  // the lock is released while they run: unsafe
};

// What became of the lock.
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
  milliseconds grace{};     // between SIGTERM and SIGKILL
  milliseconds exchange{};  // for the release
  bool renew = true;        // false: the tree is ended before the first lease is
  std::optional<milliseconds> max_hold;
  milliseconds min_hold{};
  Leftovers leftovers = Leftovers::kill;
  bool isolate = false;
  Hooks hooks;
  Inherited inherited;  // what guards let go of
  std::function<void(const LockEvent&)> report;

  std::string name() const { return display(holds); }
};

// When the lock is free if nobody renews or releases it any more.
TimePoint runs_out_at(const Job& job, const Shared& shared);

// When the frontend kills the tree if the monitor has not: never, once it is known to be empty. A quarter of the second
// that the deadline keeps free for guards is the monitor's, which can also release. A monitor that goes on killing is
// alive: without it nobody would keep the lock until the last one has died.
TimePoint frontend_acts_at(const Job& job, const Shared& shared);

// Gives all its locks back; what fails is reported.
void release_all(redis::Client& client, const Job& job);

class Guards;  // run/guards.h

// Runs the command, keeps the lock renewed, and releases it when the whole tree has ended: waitpid(2) says
// ECHILD. Returns how it ended; messages about the lock have been written then, and the hooks have run.
// `guards`: those that were forked for it before; null, or not fit for it any more: they are forked now.
// Errors: system (no guard could be started), interrupted (a signal that is to end this process came, and is still to
// be read); the lock was released, and the command has not run.
// REQUIRES: this process has one thread, but for lookups that were given up.
Result<JobEnd> run_job(const Job& job, std::unique_ptr<Guards> guards, redis::Client client, SignalBlock& signals);

}  // namespace rlock::run
