// SPDX-License-Identifier: MIT
#pragma once

#include "run/guard_socket.h"
#include "run/job.h"

namespace rlock::run {

// The monitor's part of run_job (run/frontend.h), in its own process from fork to exit.
[[noreturn]] void run_monitor(const JobContext& context, const ForkedBy& frontend);

}  // namespace rlock::run
