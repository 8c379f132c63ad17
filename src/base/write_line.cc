// SPDX-License-Identifier: MIT
#include "base/write_line.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>
#include <string>

#include "base/unique_fd.h"

namespace rlock {
namespace {

// Takes away the SIGPIPE that a write into a broken pipe leaves pending, because it would look like a signal from
// outside.
void forget_broken_pipe() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  const timespec at_once{};
  sigtimedwait(&set, nullptr, &at_once);
}

// Opens the same pipe or terminal again, so that writes never wait: another process may fill it between poll(2) and
// write(2), and O_NONBLOCK on the original would affect all processes that share it. None if it is a file or cannot be
// opened.
UniqueFd open_unwaiting(int fd) {
  struct stat about{};
  if (fstat(fd, &about) != 0 || !(S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode))) return {};
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return UniqueFd(open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

ssize_t write_some(int fd, std::string_view text) {
  const ssize_t sent = send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0 || errno != ENOTSOCK) return sent;
  return ::write(fd, text.data(), text.size());
}

}  // namespace

bool write_line(int fd, std::string_view line, milliseconds patience) {
  const UniqueFd unwaiting = open_unwaiting(fd);
  const int to = unwaiting ? unwaiting.get() : fd;
  const Until end = Until{}.at_most(patience);
  while (!line.empty()) {
    // If poll(2) reports room, PIPE_BUF bytes fit (pipe(7)).
    if (wait_for(to, POLLOUT, end) != WaitEnd::ready) return false;
    const ssize_t written = write_some(to, line.substr(0, PIPE_BUF));
    if (written < 0 && (errno == EAGAIN || errno == EINTR) && !end.over()) continue;
    if (written < 0) {
      if (errno == EPIPE) forget_broken_pipe();
      return false;
    }
    line.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace rlock
