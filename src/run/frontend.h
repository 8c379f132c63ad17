// SPDX-License-Identifier: MIT
#pragma once

#include <set>

#include "run/job.h"
#include "run/timer.h"

namespace rlock::run {

// What the guards tell each other, a packet each.
struct Packet {
  enum class Kind {
    signal,    // to the monitor: this has reached the frontend
    starting,  // to the frontend: the command is about to be let go; pass on what has come until now, then say `go`
    go,        // to the monitor: what comes from now on, the terminal has also sent to the command
    stopped,   // to the frontend: the command has been stopped; stop, too
  };
  Kind kind = Kind::signal;
  int number = 0;
  bool from_terminal = false;  // the command has had it already, if it was there
};

// What the frontend needs, so that nothing of it can fail once the monitor has been forked.
struct FrontendParts {
  static Result<FrontendParts> make();

  Timer timer;
  UniqueFd reserved;         // gives its place to the monitor's pidfd
  std::set<pid_t> children;  // that this process had before the job: not of its tree
};

// The frontend's part of run_job (see there): passes signals on to the monitor, stops when the command is
// stopped, and ends the tree itself if the monitor dies or lets the deadline pass. `control`: socket to the monitor.
Result<JobEnd> run_frontend(const Job& job, SignalBlock& signals, Shared& shared, FrontendParts parts, pid_t monitor,
                            int control);

}  // namespace rlock::run
