// SPDX-License-Identifier: MIT
// Job control: the frontend stops and continues together with the command, so that a shell sees its job stop.
//
// The monitor is the command's parent, so the kernel tells it when the command or a hook is stopped. It writes this
// into the shared page and tells the frontend, which stops itself with the same signal. A shell's fg or bg sends
// SIGCONT to the whole process group. If something else continues only the command, the monitor wakes the frontend.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "run/guard_state.h"

namespace rlock::run {

// How often a frontend that may be about to stop is woken again.
inline constexpr milliseconds kWakeAgain = 20ms;

// Stops the frontend with `signal`, which has stopped the command, unless that is already over. Returns when something
// has continued it; false if that has just happened, so the caller must first read SIGCONT and then call this again.
// While the frontend is stopped, another process guards in its place and wakes it when `monitor`, a pidfd, dies or when
// its deadline has come.
bool stop_with_command(int signal, GuardState& shared, FrontendTimer& timer, int monitor);

// For the monitor: notes what a status of waitpid(2) says about the command or a hook. Returns the signal that has
// stopped it, or 0.
int note_stop(GuardState& shared, pid_t pid, int status);

// Whether the frontend is stopped, or about to be, but the command is not.
bool stopped_alone(const GuardState& shared);

// The modes (termios(3)) and foreground process group of our controlling terminal. A command that is killed leaves them
// as it has set them: without echo, line editing or Ctrl-C.
class TerminalState {
 public:
  // The current state. Without a terminal nothing will be restored. Neither if standard input or output is something
  // else, because another program of a pipeline, such as a pager, may set and restore the modes itself. Neither if
  // canonical mode is off (ICANON), because then these are another program's modes.
  static TerminalState look();

  // Restores the modes, and the foreground if it was ours and its present group is dead. Does nothing if others use the
  // terminal, because a shell that has sent us to the background has its own modes. REQUIRES: SIGTTOU is blocked, and
  // the command has ended.
  void restore() const;

 private:
  UniqueFd terminal_;
  termios modes_{};
  pid_t foreground_ = -1;
};

}  // namespace rlock::run
