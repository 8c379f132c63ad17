// SPDX-License-Identifier: MIT
#pragma once

#include "redis/client.h"
#include "run/frontend_link.h"
#include "run/guard_state.h"
#include "run/job.h"
#include "run/signals.h"

namespace rlock::run {

// The monitor's part of run_job (see there), in its own process from fork to exit.
[[noreturn]] void run_monitor(const Job& job, redis::Client& client, SignalBlock& signals, GuardState& shared,
                              const ForkedBy& frontend);

}  // namespace rlock::run
