// SPDX-License-Identifier: MIT
// Processes, and pipes between them. Only process.cc calls fork(2) and exec(2).
//
// If this process has threads, a child may only make calls that are safe in signal handlers (signal-safety(7)) before
// exec(2), because another thread may have held the allocator's lock at the fork. So everything that needs memory is
// prepared before the fork.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include <charconv>
#include <cstddef>
#include <initializer_list>
#include <vector>

#include "base/wait.h"

namespace rlock {

// pipe(2) with close-on-exec. Errors: system.
struct Pipe {
  UniqueFd reader, writer;
  static Result<Pipe> make();
};

// Two connected close-on-exec SOCK_SEQPACKET sockets (unix(7)). `flags`: SOCK_NONBLOCK or 0. Errors: system.
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
// fork(2), but the child's parent is ours (CLONE_PARENT, clone(2)): returns 0 in it, or -1 with errno.
pid_t fork_beside();

// Like fork(2), but the child's end sends no signal, and only waits with __WALL report it. Returns -1 if that fails,
// with errno.
pid_t fork_unseen();

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

// fork(2), but the child goes on in the background (daemon(7)): in a session of its own, not as our child, with umask
// 077, and with `input` as its standard input, even before it loses its parent. It has to deal with the folder and open
// descriptors. Returns true in it. Errors: system.
Result<bool> fork_daemon(int input);
// From now on, daemons become children of our parent, because this process is a subreaper: otherwise they would be in
// the tree that it waits for. REQUIRES: our parent reaps all its children.
void fork_daemons_beside();

// In a child: it gets SIGKILL when the thread that forked it ends, and exits with 125 if `parent` is already dead.
void die_with(pid_t parent);
// Redirects these to /dev/null. Returns false if that is impossible, and has closed them then.
bool point_at_null(std::initializer_list<int> streams);
void hold_all_signals_back();
void let_all_signals_through();
// Closes the descriptors from `first` to `last`. Also works without close_range(2), as in Linux 5.8 and behind the
// filters of some container engines; without /proc as well, it closes only those up to 1023.
void close_fds(unsigned first, unsigned last = ~0u);
// Closes all descriptors from `first` but these, because somebody may wait for the end of a pipe. -1: none.
void close_fds_but(int one, int other = -1, unsigned first = 0);

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

// From now on, a write beyond the limit of a file's size (ulimit -f) fails, instead of ending this process.
// Program::exec() undoes that.
void survive_file_size_limit();
// Undoes it for a process that holds SIGXFSZ back: its writes fail then, too, and it notices if others send it one.
void notice_file_size_signal();

// A program with its arguments and environment, prepared before fork(2).
class Program {
 public:
  // A `file` without a slash is looked up in PATH, as a shell does. `environment`: NAME=value.
  Program(std::string file, std::vector<std::string> argv, std::vector<std::string> environment);
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

// Reads up to the end. Returns nothing if the end does not come in two seconds, or after 16 MiB, because half a text is
// of no use.
std::optional<std::string> read_all(int fd);
// The same of a file, whose path may be relative to an open folder. Returns nothing if it cannot be opened, either.
std::optional<std::string> read_file(const std::string& path, int folder = AT_FDCWD);

// What the program writes to its standard output; "" if it cannot be executed. Returns nothing if no process could be
// started, or the end did not come in two seconds. The program is killed then, and if it goes on after it has closed
// its output.
std::optional<std::string> output_of(const Program& program);

// The path that execvpe(3) would find in PATH if it were called in `folder`; "" if there is none.
std::string find_program(const std::string& program, const std::string& folder);

}  // namespace rlock
