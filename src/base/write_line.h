// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "base/wait.h"

namespace rlock {

// Writes a line to a descriptor that somebody else reads, and gives up after `patience`: a reader that is stuck (a
// pager that waits, Ctrl-S on a terminal) must not hold up a process that has a lock to look after. In one write(2)
// where it is no longer than PIPE_BUF, so that lines of several processes do not mix. Whether all of it was written; a
// closed pipe is no more than that, where SIGPIPE is blocked.
bool write_line(int fd, std::string_view line, milliseconds patience = milliseconds(100));

}  // namespace rlock
