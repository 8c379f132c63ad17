// SPDX-License-Identifier: MIT
#pragma once

#include "lock/quorum.h"
#include "run/guards.h"
#include "run/job.h"
#include "run/job_end.h"
#include "run/signals.h"
#include "run/terminal.h"

namespace rlock::run {

// The frontend's part of run_job (see there): hands the lock to the monitor, passes signals on to it, stops when the
// command is stopped, and ends the tree itself if the monitor dies or lets the deadline pass. `terminal`: from before the
// command.
Result<JobEnd> run_frontend(const Job& job, SignalBlock& signals, Guards& guards, lock::Servers& client,
                            const TerminalState& terminal);

}  // namespace rlock::run
