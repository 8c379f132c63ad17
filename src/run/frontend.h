// SPDX-License-Identifier: MIT
// Running a command under a lock, in three processes:
//   frontend  the process that calls run_job, whose pid the user sees: signals and job control. No Redis, once the
//             monitor has the connection
//   monitor   its child, in its own session (or, if there are hooks and a shell, only in its own process group): renews
//             the lock, watches the tree, releases the lock
//   command   the monitor's child, in the frontend's process group, so that the terminal treats it as it would without
//             rlock
// Frontend and monitor are the guards: both are subreapers, and both kill the tree by the deadline in shared memory. If
// one dies, the other ends the tree at once. Monitor and command may exist before we have the lock (run/guards.h).
#pragma once

#include <memory>

#include "base/error.h"
#include "lock/servers.h"
#include "run/guards.h"
#include "run/job.h"
#include "run/signals.h"

namespace rlock::run {

// Runs the command, renews the lock meanwhile, and releases it when the whole tree has ended (waitpid(2) returns
// ECHILD). Returns how the job ended, after all messages and hooks. `guards`: those forked ahead of the lock; if they
// are null or no longer fit, new ones are forked.
// Errors: system (no guard could be started), interrupted (a signal that asks to end is pending); then the command has
// not run, and the lock was released. REQUIRES: this process has one thread.
Result<JobEnd> run_job(const Job& job, std::unique_ptr<Guards> guards, lock::Servers client, SignalBlock& signals);

}  // namespace rlock::run
