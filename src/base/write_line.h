// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "base/wait.h"

namespace rlock {

// Writes a line to a descriptor that another process reads. Gives up after `patience`, because a reader that is stuck
// (a pager, Ctrl-S on a terminal) must not hold up a process that keeps a lock. A line of up to PIPE_BUF bytes is one
// write(2), so that lines of several processes don't mix. Returns whether the whole line was written. A closed pipe
// only makes it false, if SIGPIPE is blocked.
bool write_line(int fd, std::string_view line, milliseconds patience = milliseconds(100));

}  // namespace rlock
