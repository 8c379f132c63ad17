// SPDX-License-Identifier: MIT
// Processes, and pipes between them. Only process.cc calls fork(2) and exec(2).
//
// If this process has threads, a child may only make calls that are safe in signal handlers (signal-safety(7)) before
// exec(2), because another thread may have held the allocator's lock at the fork. So everything that needs memory is
// prepared before the fork.
#pragma once

#include <dirent.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"

namespace rlock {

// pipe(2) with close-on-exec. Errors: system.
struct Pipe {
  UniqueFd reader, writer;
  static Result<Pipe> make();
};

// Two connected close-on-exec sockets that keep messages apart (SOCK_SEQPACKET, unix(7)). `flags`: SOCK_NONBLOCK or 0.
// Errors: system.
struct SocketPair {
  UniqueFd ours, theirs;
  static Result<SocketPair> make(int flags);
};

// pidfd_open(2). A descriptor of this very process, even if its pid is used again; readable once it has ended. None if
// it fails, with errno.
UniqueFd open_process(pid_t pid);
// pidfd_send_signal(2) to a descriptor from open_process().
void signal_process(int process, int signal);

// fork(2): returns 0 in the child. Errors: system.
Result<pid_t> fork_process();
Error cannot_fork(int number);  // from errno

// In a child: ends it, and continues in a grandchild with a session of its own.
void leave_for_background();

// Starts a child that calls `become`. It exits with 127 if that returns, because exec(2) has failed. Errors: system.
template <class Become>
Result<pid_t> spawn(Become become) {
  const pid_t pid = RLOCK_TRY(fork_process());
  if (pid > 0) return pid;
  become();
  _exit(127);
}

// Waits for a child to end, and returns its status from waitpid(2).
int reap(pid_t child);
// What such a status says: "exited with 3", "was killed by signal 9", or "" for success.
std::string trouble_of(int status);

// Like spawn(), but in the background (daemon(7)): in a session of its own, not as our child, and with umask 077.
// `become` has to deal with the folder and open descriptors.
template <class Become>
Result<void> spawn_daemon(Become become) {
  const int status = reap(RLOCK_TRY(spawn([&] {
    leave_for_background();
    become();
  })));
  return status == 0 ? Result<void>() : std::unexpected(cannot_fork(WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD));
}

// In a child: it gets SIGKILL when the thread that forked it ends, and exits with 125 if `parent` is already dead.
void die_with(pid_t parent);
// Redirects these to /dev/null. Returns false if that is impossible, and has closed them then.
bool point_at_null(std::initializer_list<int> streams);
// Unblocks all signals.
void let_all_signals_through();
// Closes the descriptors from `first` to `last`. Also works without close_range(2), as in Linux 5.8 and behind the
// filters of some container engines; without /proc as well, it closes only those up to 1023.
void close_fds(unsigned first, unsigned last = ~0u);

// The entries of the system call are those of readdir(3) on all 64-bit systems; readdir itself allocates memory.
static_assert(offsetof(dirent, d_name) == 19 && offsetof(dirent, d_reclen) == 16);

// Calls `found` with each number that is the name of an entry in `folder`, an open folder of /proc. Safe in signal
// handlers. `found` may close descriptors while /proc/self/fd is read, because entries are found by number.
template <class Found>
void each_number_in(int folder, Found found) {
  alignas(dirent) char entries[2048];
  for (long length; (length = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0;) {
    for (long at = 0; at < length;) {
      const auto& entry = *reinterpret_cast<const dirent*>(entries + at);
      at += entry.d_reclen;
      int number = 0;
      const char* end = entry.d_name + std::strlen(entry.d_name);
      if (std::from_chars(entry.d_name, end, number).ptr == end) found(number);
    }
  }
}

// A program with its arguments and environment, prepared before fork(2).
class Program {
 public:
  // A `file` without a slash is looked up in PATH, as a shell does. `environment`: NAME=value.
  Program(std::string file, std::vector<std::string> argv, std::vector<std::string> environment);
  // `text` for /bin/sh.
  static Program shell(std::string text, std::vector<std::string> environment);
  Program(Program&&) = default;

  // Adds a variable, "NAME=value". It may still change, because only exec() reads it. REQUIRES: it outlives this
  // object.
  void add(char* variable);
  // execve(2). A script without an interpreter line is run by /bin/sh, as POSIX says of execvp. Returns only if it
  // fails, with errno.
  void exec() const;

 private:
  std::string file_;
  std::vector<std::string> words_, variables_;
  std::vector<char*> argv_, environment_;  // pointers to these strings, with a null pointer at the end
};

// The environment of this process.
std::vector<std::string> own_environment();

// The path that execvpe(3) would find in PATH if it were called in `folder`; "" if there is none.
std::string find_program(const std::string& program, const std::string& folder);

}  // namespace rlock
