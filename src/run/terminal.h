// SPDX-License-Identifier: MIT
// The terminal as the job found it.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include "base/unique_fd.h"

namespace rlock::run {

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
