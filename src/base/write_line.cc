// SPDX-License-Identifier: MIT
#include "base/write_line.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>

namespace rlock {
namespace {

// The signal that a write into a broken pipe sends to the writing thread, where it is blocked: it would be taken for
// one that somebody has sent us.
void forget_broken_pipe() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  const timespec at_once{};
  sigtimedwait(&set, nullptr, &at_once);
}

}  // namespace

bool write_line(int fd, std::string_view line, milliseconds patience) {
  const Until end = Until{}.at_most(patience);
  while (!line.empty()) {
    // So much never blocks where poll(2) says that something can be written (pipe(7)).
    if (wait_for(fd, POLLOUT, end) != WaitEnd::ready) return false;
    const ssize_t written = ::write(fd, line.data(), std::min<std::size_t>(line.size(), PIPE_BUF));
    if (written < 0) {
      if (errno == EPIPE) forget_broken_pipe();
      return false;
    }
    line.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace rlock
