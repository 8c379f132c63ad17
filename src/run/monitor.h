// SPDX-License-Identifier: MIT
#pragma once

#include "lock/quorum.h"
#include "run/guard_socket.h"
#include "run/guard_state.h"
#include "run/job.h"
#include "run/signals.h"

namespace rlock::run {

// The monitor's part of run_job (see there), in its own process from fork to exit.
[[noreturn]] void run_monitor(const Job& job, lock::Servers& client, SignalBlock& signals, GuardState& shared,
                              const ForkedBy& frontend);

}  // namespace rlock::run
