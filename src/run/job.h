// SPDX-License-Identifier: MIT
// Running a command under a lock that is held.
//
// Three processes (their names are those of the code):
//   frontend  the process that calls run_job, the pid that the user sees: signals and job control; no Redis
//   monitor   its child, in a process group of its own: renews, watches the tree, releases
//   command   the monitor's child, in the frontend's process group: for the terminal as if unwrapped
// Frontend and monitor are the guards: both are subreapers and both kill the tree by the deadline in memory
// that they share. If either dies, the other ends the tree at once.
#pragma once

#include "base/error.h"
#include "lock/lease.h"
#include "lock/verbs.h"
#include "redis/client.h"
#include "run/command.h"
#include "run/shared.h"
#include "run/signals.h"

namespace rlock::run {

struct Job {
  Command command;
  lock::Hold hold;
  lock::LeaseTiming timing;
  milliseconds grace{};     // between SIGTERM and SIGKILL
  milliseconds exchange{};  // for the release
};

// Runs the command, keeps the lock renewed, and releases it when the whole tree has ended: waitpid(2) says
// ECHILD. Returns how it ended; messages about the lock have been written then.
// Errors: system (no guard could be started; the lock was released, the command has not run).
// REQUIRES: this process has one thread.
Result<JobEnd> run_job(const Job& job, redis::Client client, SignalBlock& signals);

}  // namespace rlock::run
