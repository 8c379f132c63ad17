// SPDX-License-Identifier: MIT
// Job control: the frontend stops and goes on with the command, so that a shell sees its job stopped.
//
// The monitor is the command's parent and hears from the kernel that the command, or a hook, was stopped. It writes
// that into the shared page and tells the frontend, which stops by the same signal. Anybody who lets the job go on, a
// shell's fg or bg, sends SIGCONT to the whole process group. A frontend that is stopped while the command runs, since
// something else has let only the command go on, is woken by the monitor.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "run/guard_state.h"

namespace rlock::run {

// How often a frontend that may just be about to stop is told again to go on.
inline constexpr milliseconds kWakeAgain = 20ms;

// Stops the frontend by `signal`, which has stopped the command, unless that is over by now; returns when somebody has
// let it go on. False: somebody has done that just now; ask again when that signal was read. While it is stopped
// another process stands in for it as a guard: it lets the frontend go on when `monitor`, a pidfd, dies, or the
// frontend's deadline has come.
bool stop_with_command(int signal, GuardState& shared, FrontendTimer& timer, int monitor);

// The monitor's part: what a status of waitpid(2) says of the command or a hook. The signal that has stopped it; 0: it
// goes on, or has ended.
int note_stop(GuardState& shared, pid_t pid, int status);

// The frontend is stopped, or about to be, and the command is not.
bool stopped_alone(const GuardState& shared);

// The modes (termios(3)) and the foreground process group of our controlling terminal. A command that is killed leaves
// them as it has set them: without echo, without lines, without Ctrl-C.
class TerminalState {
 public:
  // As they are now. Nothing is restored without a terminal; nor where standard input or output is something else, as
  // another program of a pipeline, such as a pager, may have set the modes and give them back itself; nor where lines
  // are off (ICANON): those are the modes of somebody who draws.
  static TerminalState look();

  // Gives the modes back, and the foreground if it was ours and belongs to nobody that lives. Nothing where others use
  // the terminal: a shell that has sent us to the background has modes of its own.
  // REQUIRES: SIGTTOU is blocked. The command has ended.
  void restore() const;

 private:
  UniqueFd terminal_;
  termios modes_{};
  pid_t foreground_ = -1;
};

}  // namespace rlock::run
