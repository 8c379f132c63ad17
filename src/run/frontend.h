// SPDX-License-Identifier: MIT
#pragma once

#include "run/job.h"

namespace rlock::run {

// The frontend's part of run_job (see there): passes signals on to the monitor, stops when the command is
// stopped, and ends the tree itself if the monitor dies or lets the deadline pass.
// `control`: socket to the monitor; each packet is one signal number, and any packet from there means that
// the command has been stopped.
Result<JobEnd> run_frontend(const Job& job, SignalBlock& signals, Shared& shared, pid_t monitor, int control);

// Lets go of standard input and output, so that pipes end when the command closes them.
void leave_standard_streams();

}  // namespace rlock::run
