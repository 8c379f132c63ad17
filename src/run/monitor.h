// SPDX-License-Identifier: MIT
#pragma once

#include "redis/client.h"
#include "run/frontend_timer.h"
#include "run/job.h"
#include "run/shared.h"
#include "run/signals.h"

namespace rlock::run {

// The monitor's part of run_job (see there), in its own process from fork to exit. `control`: socket to the
// frontend, see run/control.h; `frontend_timer`: the frontend's, which is moved on with the deadline.
[[noreturn]] void run_monitor(const Job& job, redis::Client& client, SignalBlock& signals, Shared& shared,
                              pid_t frontend, int control, FrontendTimer& frontend_timer);

}  // namespace rlock::run
