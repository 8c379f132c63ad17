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

#include <memory>

#include "base/error.h"
#include "lock/servers.h"
#include "run/guards.h"
#include "run/job.h"
#include "run/signals.h"

namespace rlock::run {

// Runs the command, keeps the lock renewed, and releases it when the whole tree has ended: waitpid(2) says
// ECHILD. Returns how it ended; messages about the lock have been written then, and the hooks have run.
// `guards`: those that were forked for it before; null, or not fit for it any more: they are forked now.
// Errors: system (no guard could be started), interrupted (a signal that is to end this process came, and is still to
// be read); the lock was released, and the command has not run.
// REQUIRES: this process has one thread.
Result<JobEnd> run_job(const Job& job, std::unique_ptr<Guards> guards, lock::Servers client, SignalBlock& signals);

}  // namespace rlock::run
