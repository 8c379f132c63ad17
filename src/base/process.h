// SPDX-License-Identifier: MIT
// Processes: pipes between them, their start, their end. Every fork(2) and exec(2) of rlock is in process.cc.
//
// Where this process has threads, a child may only make calls that are safe in signal handlers (signal-safety(7))
// before exec(2): another thread may have held the allocator's lock at the fork. Whatever needs memory is made before.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"

namespace rlock {

// pipe(2); exec(2) closes both ends. Errors: system.
struct Pipe {
  UniqueFd reader, writer;
  static Result<Pipe> make();
};

// Two connected sockets that keep messages apart (SOCK_SEQPACKET, unix(7)); exec(2) closes both. `flags`: SOCK_NONBLOCK
// or 0. Errors: system.
struct SocketPair {
  UniqueFd ours, theirs;
  static Result<SocketPair> make(int flags);
};

// pidfd_open(2). A descriptor that stays with this process, whoever gets its number later; readable once it has ended.
// None: errno says why.
UniqueFd open_process(pid_t pid);
// pidfd_send_signal(2), to a process of open_process().
void signal_process(int process, int signal);

// fork(2): 0 in the child. Errors: system, with advice where there are too many processes.
Result<pid_t> fork_process();

// In a child: the rest of it is done by another process, in a session of its own, whose parent ends here.
void leave_for_background();

// Starts a child that calls `become`, and ends with status 127 if that returns: exec(2) has failed. Errors: as above.
template <class Become>
Result<pid_t> spawn(Become become) {
  const pid_t pid = RLOCK_TRY(fork_process());
  if (pid > 0) return pid;
  become();
  _exit(127);
}

// Waits for the end of a child, and returns its status as waitpid(2) has it.
int reap(pid_t child);
// "ended with 3", "was killed by signal 9": what such a status says. Empty if all was well.
std::string trouble_of(int status);

// The same for a process in the background (daemon(7)): it has a session of its own, is not our child, and creates
// files for its user alone. Its folder and its descriptors are left to `become`.
template <class Become>
Result<void> spawn_daemon(Become become) {
  reap(RLOCK_TRY(spawn([&] {
    leave_for_background();
    become();
  })));
  return {};
}

// In a child. It dies (SIGKILL) when the thread that has forked it ends; it ends with 125 if `parent` has died before.
void die_with(pid_t parent);
// Points these at /dev/null. False: it cannot be opened.
bool point_at_null(std::initializer_list<int> streams);
// No signal is held back, whatever this process was started with.
void let_all_signals_through();
// Closes the descriptors from `first` to `last`, as close_range(2), also where that is missing: in Linux 5.8 and
// before, and behind the filters of some container engines. There, without /proc, those up to 1023.
void close_fds(unsigned first, unsigned last = ~0u);

// A program with its arguments and its environment, made ready before fork(2).
class Program {
 public:
  // `file` is looked up in PATH as a shell does, where it has no slash. `environment`: NAME=value.
  Program(std::string file, std::vector<std::string> argv, std::vector<std::string> environment);
  // `text` for /bin/sh.
  static Program shell(std::string text, std::vector<std::string> environment);
  Program(Program&&) = default;

  // One more variable, "NAME=value", which is read by exec() only. REQUIRES: it lives longer.
  void add(char* variable);
  // Becomes the program, or the shell with it where it is a script that names no interpreter (POSIX, execvp). Returns
  // if it cannot, with errno.
  void exec() const;

 private:
  std::string file_;
  std::vector<std::string> words_, variables_;
  std::vector<char*> argv_, environment_;  // pointers into these, and a null pointer
};

// The variables of this process.
std::vector<std::string> own_environment();

// Where execvpe(3) finds a program; `folder` is where that is called. Empty: nowhere.
std::string find_program(const std::string& program, const std::string& folder);

}  // namespace rlock
