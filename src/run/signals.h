// SPDX-License-Identifier: MIT
// Signals as something to read.
#pragma once

#include <csignal>
#include <optional>

#include "base/error.h"
#include "base/unique_fd.h"

namespace rlock::run {

struct ReceivedSignal {
  int number = 0;
  pid_t sender = 0;
  // The terminal sent it, and so has sent it to the command too, which is in the same process group.
  bool from_terminal = false;
};

// Signals that have come to this process and are held back.
class HeldSignals {
 public:
  HeldSignals() { sigemptyset(&set_); }
  static HeldSignals now();
  // Whether it is one of them, and takes it out.
  bool take(int signal);

 private:
  sigset_t set_;
};

// Holds signals back from its making on, so that they can arrive at one point only: where they are read.
// No handler is ever installed, so that a child gets its parent's dispositions by restoring the mask alone.
// Signals that were ignored or blocked when we were started, as nohup(1) and `&` do it, do nothing to us; a command
// that changes that for itself gets them.
class SignalBlock {
 public:
  // Holds back what would end this process; Ctrl-Z and the like still act at once. For the time of waiting.
  // Errors: system.
  static Result<SignalBlock> begin();
  // The same, with Ctrl-Z and what lets a process go on after it, for one that gives the terminal back: see stop_by().
  static Result<SignalBlock> begin_at_terminal();

  // From now on holds back everything, for a guard that passes signals on.
  Result<void> hold_all();

  // As fork_process(), with everything held back in the child from its first moment on.
  Result<pid_t> fork_held_back() const;

  // From now on only SIGCHLD is read, for a guard that has forked; the others stay held back.
  Result<void> read_children_only();

  // Readable while there is a signal to be read by the calling process.
  int fd() const { return fd_.get(); }
  // The next signal; none if there is none.
  std::optional<ReceivedSignal> next();

  // Whether a signal asks us to end: INT, TERM, HUP, QUIT, unless it was ignored or blocked when we were started.
  bool asks_to_end(int signal) const;
  // One that does has come, and was not read yet.
  bool was_asked_to_end() const;

  // In a child, before exec(2): everything as our parent had left it to us.
  void restore() const;

 private:
  SignalBlock() = default;
  static Result<SignalBlock> begin_with(const sigset_t& signals);
  Result<void> read_only(const sigset_t& signals);

  UniqueFd fd_;
  sigset_t former_mask_{};
  bool children_ignored_ = false;
};

// In a child that shall do something when it is told to end: SIGTERM, also where it was ignored, does nothing until
// wait_for_sigterm(), which returns when it has come. Safe between fork(2) and exec(2).
void hold_sigterm_back();
void wait_for_sigterm();

// Holds SIGCHLD back. A descriptor that is readable while there is one to be read, without waiting; none if
// there is none to be had.
UniqueFd hold_children_back();

// Stops this process by `signal`, SIGTSTP and the like, so that its shell sees what has stopped the command; by SIGSTOP
// where the kernel ignores it: in an orphaned process group (POSIX, "Orphaned Process Group"), or where it was ignored
// when we were started. Returns when somebody has let it go on. REQUIRES: `signal` and SIGCONT are held back.
void stop_by(int signal);

// The same for SIGTSTP and the like, but false where the kernel ignores it, and at once: nobody could let us go on
// there.
bool stop_if_we_may(int signal);

// Somebody has let this process go on, which was not read yet. Whatever stops a process later takes that away.
bool was_continued();

// Ends this process by `signal`, without a core file: the shell sees what it would have seen without us.
[[noreturn]] void die_of(int signal);

}  // namespace rlock::run
