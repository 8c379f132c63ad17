// SPDX-License-Identifier: MIT
#pragma once

#include "redis/client.h"
#include "run/frontend_timer.h"
#include "run/guard_state.h"
#include "run/job.h"
#include "run/signals.h"

namespace rlock::run {

// The monitor's part of run_job (see there), in its own process from fork to exit. `socket`: socket to the
// frontend, see run/guard_socket.h; `frontend_timer`: the frontend's, which is moved on with the deadline.
[[noreturn]] void run_monitor(const Job& job, redis::Client& client, SignalBlock& signals, GuardState& shared,
                              pid_t frontend, int socket, FrontendTimer& frontend_timer);

}  // namespace rlock::run
