// SPDX-License-Identifier: MIT
// The monitor: its start and its end (monitor.cc), and between them its event loop (event_loop.cc), which waits until
// something has happened, tells the state machine (run/life.h), and does what that says.
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/wait.h"
#include "run/command.h"
#include "run/guard_state.h"
#include "run/job.h"
#include "run/renewer.h"

namespace rlock::run {

// The monitor's part of run_job (run/frontend.h), in its own process from fork to exit.
[[noreturn]] void run_monitor(const JobContext& context, const ForkedBy& frontend);

// What the monitor watches.
struct Watched {
  Timer timer;  // of the monitor
  FrontendLink frontend;
  GatedCommand command;
  LockWatch lock;
};

// The whole life of a job, whose command is in the process group `group`, the frontend's. `ahead` of the lock: that
// comes later. Errors: there was no job.
Result<JobEnd> see_job_through(const JobContext& context, pid_t group, Watched& watched, bool ahead);

}  // namespace rlock::run
