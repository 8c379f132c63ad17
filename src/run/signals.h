// SPDX-License-Identifier: MIT
// Signals that are read instead of handled.
#pragma once

#include <csignal>
#include <optional>

#include "base/error.h"
#include "base/unique_fd.h"

namespace rlock::run {

struct ReceivedSignal {
  int number = 0;
  pid_t sender = 0;
  // The terminal sent it to the process group, so the command has received it, too.
  bool from_terminal = false;
};

// Signals that are pending for this process, because they are held back.
class HeldSignals {
 public:
  HeldSignals() { sigemptyset(&set_); }
  static HeldSignals now();
  // Whether it is one of them; removes it.
  bool take(int signal);

 private:
  sigset_t set_;
};

// Blocks signals from its creation on, so that they arrive only where they are read. It never installs a handler, so a
// child only has to restore the mask. Signals that were ignored or blocked when we were started, as by nohup(1) and
// `&`, have no effect on us, but reach a command that changes that for itself.
class SignalBlock {
 public:
  // For waiting: holds back the signals that would end this process. Ctrl-Z and the like still work. Errors: system.
  static Result<SignalBlock> begin();
  // The same, plus Ctrl-Z and SIGCONT, for a process that restores the terminal before it stops: see stop_by().
  static Result<SignalBlock> begin_at_terminal();

  // For a guard that passes signals on: holds back all of them from now on.
  Result<void> hold_all();

  // Like fork_process(), but the child starts with all signals held back.
  Result<pid_t> fork_held_back() const;

  // For a guard that has forked: only SIGCHLD is read from now on, and the others stay held back.
  Result<void> read_children_only();

  // Readable while there is a signal for the calling process.
  int fd() const { return fd_.get(); }
  // The next signal, if any.
  std::optional<ReceivedSignal> next();

  // Whether a signal asks us to end: INT, TERM, HUP or QUIT, unless it was ignored or blocked when we were started.
  bool asks_to_end(int signal) const;
  // Whether such a signal is pending.
  bool was_asked_to_end() const;

  // In a child, before exec(2): restores everything that our parent had set.
  void restore() const;

 private:
  SignalBlock() = default;
  static Result<SignalBlock> begin_with(const sigset_t& signals);
  Result<void> read_only(const sigset_t& signals);

  UniqueFd fd_;
  sigset_t former_mask_{};
  bool children_ignored_ = false;
};

// For a child that must act when it is asked to end: holds SIGTERM back, even if it was ignored, until
// wait_for_sigterm(), which returns when it has come. Safe between fork(2) and exec(2).
void hold_sigterm_back();
void wait_for_sigterm();

// Holds SIGCHLD back. Returns a non-blocking descriptor that is readable while one is pending; none if it fails.
UniqueFd hold_children_back();

// Stops this process with `signal`, such as SIGTSTP, so that its shell sees what has stopped the command. Uses SIGSTOP
// if the kernel ignores that signal: in an orphaned process group (POSIX, "Orphaned Process Group"), or if it was
// ignored when we were started. Returns when it is continued. REQUIRES: `signal` and SIGCONT are held back.
void stop_by(int signal);

// The same for SIGTSTP and the like, but if the kernel ignores it, returns false at once, because then nobody could
// continue this process.
bool stop_if_we_may(int signal);

// Whether SIGCONT is pending for this process. Any later stop removes it.
bool was_continued();

// Ends this process with `signal`, without a core file, so that the shell sees what it would see without rlock.
[[noreturn]] void die_of(int signal);

}  // namespace rlock::run
