// SPDX-License-Identifier: MIT
// The monitor: its start and end (monitor.cc), and its event loop (event_loop.cc), which waits for events, passes them
// to the state machine (run/life.h), and performs the actions that this returns.
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/wait.h"
#include "run/command.h"
#include "run/guard_state.h"
#include "run/job.h"
#include "run/renewer.h"

namespace rlock::run {

// Runs the monitor's part of run_job (run/frontend.h) in its own process.
[[noreturn]] void run_monitor(const JobContext& context, const ForkedBy& frontend);

// What the monitor watches.
struct Watched {
  Timer timer;
  FrontendLink frontend;
  GatedCommand command;
  LockWatch lock;
};

// Runs a job from its start to its end. `group`: the process group of the frontend and the command. `ahead`: the lock
// will come later. Errors: there was no job.
Result<JobEnd> see_job_through(const JobContext& context, pid_t group, Watched& watched, bool ahead);

}  // namespace rlock::run
