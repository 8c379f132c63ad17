// SPDX-License-Identifier: MIT
#include "base/write_line.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <climits>
#include <csignal>
#include <ctime>
#include <mutex>
#include <span>

#include "base/process.h"

namespace rlock {
namespace {

// Takes away the signal that a write into a broken pipe, or beyond the limit of a file's size, leaves pending, because
// it would look like one from outside.
void forget(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
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
  return ::write(fd, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
}

// Asks nothing of its file system, which may be frozen.
bool is_file(int fd) {
  int unused, size = sizeof unused;
  // Also works for pipes, sockets and terminals, but not for devices like /dev/null.
  if (ioctl(fd, FIONREAD, &unused) != 0) return false;
  return fcntl(fd, F_GETPIPE_SZ) < 0 && !isatty(fd) &&
         getsockopt(fd, SOL_SOCKET, SO_TYPE, &unused, reinterpret_cast<socklen_t*>(&size)) != 0;
}

FileWriters own_writers;
FileWriters* writers = &own_writers;

// Waits until `before` is readable; -1: for nothing.
[[noreturn]] void write_and_end(int fd, std::string_view line, int before) {
  hold_all_signals_back();
  setsid();
  close_fds_but(fd, before);
  if (chdir("/") != 0) _exit(1);
  if (before >= 0) wait_for(before, POLLIN, Until{});
  while (!line.empty()) {
    const ssize_t written = ::write(fd, line.data(), line.size());
    if (written < 0) _exit(1);
    line.remove_prefix(static_cast<std::size_t>(written));
  }
  _exit(0);
}

struct Queue {
  std::atomic<bool> stuck;  // its reader, if it is no file
  std::mutex mutex;
  UniqueFd last;  // the newest process
};

// Waits for a writer; returns false if it still writes. Sets the status of one that has ended.
bool has_ended(pid_t writer, const UniqueFd& process, int& status, const Until& end) {
  // Where no descriptor is left, or the kernel has no pidfd_open, it can only be asked again and again.
  while (waitpid(writer, &status, __WALL | WNOHANG) == 0) {
    if (end.over()) return false;
    wait_for(process.get(), POLLIN, process ? end : end.at_most(1ms));
  }
  return true;
}

// Those that have ended, or that are another process's children.
void forget_ended(std::span<std::atomic<pid_t>> pids) {
  int unused = 0;
  for (std::atomic<pid_t>& pid : pids) {
    if (pid != 0 && waitpid(pid, &unused, __WALL | WNOHANG) != 0) pid = 0;
  }
}

bool write_by_process(Queue& queue, std::span<std::atomic<pid_t>> pids, int fd, std::string_view line,
                      milliseconds patience) {
  const std::lock_guard alone(queue.mutex);
  forget_ended(pids);
  const auto free = std::ranges::find_if(pids, [](const std::atomic<pid_t>& pid) { return pid == 0; });
  if (free == pids.end()) return false;
  const bool in_turn = !queue.last || wait_for(queue.last.get(), POLLIN, Until{}.at_most(0ms)) == WaitEnd::ready;
  if (in_turn) queue.last.reset();
  const pid_t child = fork_unseen();
  if (child == 0) write_and_end(fd, line, queue.last.get());
  if (child < 0) return write_line(fd, line);
  *free = child;
  queue.last = open_process(child);
  int status = 0;
  // If it still writes, it is not known to have failed.
  if (!in_turn || !has_ended(child, queue.last, status, Until{}.at_most(patience))) return true;
  *free = 0;
  queue.last.reset();
  return status == 0;
}

}  // namespace

bool write_line(int fd, std::string_view line, milliseconds patience) {
  const UniqueFd unwaiting = open_unwaiting(fd);
  const int to = unwaiting ? unwaiting.get() : fd;
  const Until end = Until{}.at_most(patience);
  while (!line.empty()) {
    // If poll(2) reports room, PIPE_BUF bytes fit (pipe(7)).
    if (wait_for(to, POLLOUT, end) != WaitEnd::ready) return false;
    const ssize_t written = write_some(to, line);
    if (written < 0 && failed_for_now() && !end.over()) continue;
    if (written < 0) {
      if (errno == EPIPE) forget(SIGPIPE);
      if (errno == EFBIG) forget(SIGXFSZ);
      return false;
    }
    line.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool write_line_anywhere(int fd, std::string_view line, milliseconds patience) {
  static std::array<Queue, 2> both;
  const std::size_t which = fd == STDERR_FILENO ? 0 : 1;
  Queue& queue = both[which];
  if (is_file(fd)) {
    return write_by_process(queue, {writers->data() + which * kMostFileWriters, kMostFileWriters}, fd, line, patience);
  }
  const bool written = write_line(fd, line, queue.stuck ? 0ms : patience);
  if (patience > 0ms) queue.stuck = !written;
  return written;
}

void wait_for_file_writers() {
  const Until end = Until{}.at_most(2s);
  int unused = 0;
  for (const pid_t writer : *writers) {
    if (writer > 0) has_ended(writer, {}, unused, end);
  }
}

void note_file_writers_in(FileWriters& there) { writers = &there; }

bool is_file_writer(pid_t pid) {
  return std::ranges::any_of(*writers, [&](const std::atomic<pid_t>& one) { return one == pid; });
}

}  // namespace rlock
