// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <string>

#include "base/error.h"

namespace rlock::run {

// The text for a fork(2) that has just failed. REQUIRES: errno is its.
inline std::string no_process() {
  const int number = errno;
  return "cannot start a process: " + errno_text(number) +
         (number == EAGAIN ? "; raise the limit of processes (ulimit -u, pids.max of the cgroup)" : "");
}

// The same as an error. Code: system.
inline std::unexpected<Error> fail_without_process() { return fail(Error::Code::system, no_process()); }

}  // namespace rlock::run
