// SPDX-License-Identifier: MIT
// Signals that are read instead of handled.
#pragma once

#include <sys/types.h>

#include <csignal>

#include "base/wait.h"

namespace rlock::run {

struct ReceivedSignal {
  int number = 0;
  pid_t sender = 0;
  // The terminal sent it to the process group, so the command has received it, too.
  bool from_terminal = false;
  // A sender outside of a process's PID namespace is 0 there, and if a signal goes to a group, also for all members
  // that get it after that process.
  bool same_as(const ReceivedSignal& other) const {
    return number == other.number && (sender == other.sender || sender == 0 || other.sender == 0);
  }
};

// Takes a signal that is held back, if it is pending.
std::optional<ReceivedSignal> take_pending(int signal);

// Signals that are pending for this process, because they are held back.
class HeldSignals {
 public:
  HeldSignals() { sigemptyset(&set_); }
  static HeldSignals now();
  bool has(int signal) const { return sigismember(&set_, signal) == 1; }
  // Whether it is one of them; removes it.
  bool take(int signal);
  // Makes them no longer pending, except SIGCHLD.
  void drop() const;

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
  Result<void> read_only(const sigset_t& signals);

  UniqueFd fd_;
  sigset_t former_mask_{};
  bool children_ignored_ = false;
};

// Stops this process with `signal`, such as SIGTSTP, so that its shell sees what has stopped the command. Uses SIGSTOP
// if the kernel ignores that signal: in an orphaned process group (POSIX, "Orphaned Process Group"), or if it was
// ignored when we were started. Returns when it is continued. REQUIRES: `signal` and SIGCONT are held back.
void stop_by(int signal);

// Whether SIGCONT is pending for this process. Any later stop removes it.
bool was_continued();

// Ends this process with `signal`, without a core file, so that the shell sees what it would see without rlock.
[[noreturn]] void die_of(int signal);

// How long a sender may take for all processes, if it signals them one by one on a busy machine.
inline constexpr milliseconds kSendersTake = 100ms;

// Whether the sender of a signal that has reached all of our processes one by one has also sent it to the command: it
// is a service manager. We cannot know that of others, and a second signal is better than none.
bool signals_all_processes(pid_t sender);

// Tells whether a signal was sent to the frontend alone or to the command, too: a child of the frontend in its process
// group that holds all signals back, and is asked whether the same sender has sent it the same signal. The kernel
// signals the youngest member of a group first, so if a signal was sent to the group, the witness has it before the
// frontend. Who signals processes one by one may reach it, too, but then also reaches the monitor, which is outside of
// the group.
class Witness {
 public:
  ~Witness() { end(); }

  // Forks it. Without it, as when there can be no more processes, we only know what the
  // terminal sends. REQUIRES: the command's process exists, all signals are held back, and this process has one thread.
  void begin(pid_t command);
  void end();
  // Must be told of each child that was reaped.
  void reaped(pid_t child);

  bool lives() const { return pid_ > 0; }
  // Whether it is there, and stands for the command: that lives, and is in our group.
  bool there() const;
  // Whether it is there and has received this signal from the same sender. True only once for each signal.
  bool saw(const ReceivedSignal& signal);

 private:
  UniqueFd socket_;  // to it
  pid_t pid_ = -1, command_ = -1;
};

}  // namespace rlock::run
