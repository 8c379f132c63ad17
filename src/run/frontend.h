// SPDX-License-Identifier: MIT
#pragma once

#include "run/job.h"
#include "run/timer.h"

namespace rlock::run {

// A packet from the frontend to the monitor: a signal that has reached it. A packet the other way means that the
// command has been stopped.
struct PassedSignal {
  int number = 0;
  bool from_terminal = false;  // the command has had it already
};

// What the frontend needs, so that nothing of it can fail once the monitor has been forked.
struct FrontendParts {
  static Result<FrontendParts> make();

  Timer timer;
  UniqueFd reserved;  // gives its place to the monitor's pidfd
};

// The frontend's part of run_job (see there): passes signals on to the monitor, stops when the command is
// stopped, and ends the tree itself if the monitor dies or lets the deadline pass. `control`: socket to the monitor.
Result<JobEnd> run_frontend(const Job& job, SignalBlock& signals, Shared& shared, FrontendParts parts, pid_t monitor,
                            int control);

}  // namespace rlock::run
