// SPDX-License-Identifier: MIT
#include "run/terminal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace rlock::run {

TerminalState TerminalState::look() {
  // Only our controlling terminal has a session for us, and it is ours.
  const pid_t session = getsid(0);
  if (tcgetsid(STDIN_FILENO) != session || tcgetsid(STDOUT_FILENO) != session) return {};
  TerminalState state;
  state.terminal_ = UniqueFd(open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!state.terminal_ || tcgetattr(state.terminal_.get(), &state.modes_) != 0) return {};
  if ((state.modes_.c_lflag & ICANON) == 0) return {};
  state.foreground_ = tcgetpgrp(state.terminal_.get());
  return state;
}

void TerminalState::restore() const {
  if (!terminal_) return;
  const pid_t ours = getpgrp();
  pid_t foreground = tcgetpgrp(terminal_.get());
  const bool nobodys = foreground > 0 && kill(-foreground, 0) != 0 && errno == ESRCH;
  if (nobodys && foreground_ == ours && tcsetpgrp(terminal_.get(), ours) == 0) foreground = ours;
  // At once: output that is held up by Ctrl-S must not hold up us.
  if (foreground == ours) tcsetattr(terminal_.get(), TCSANOW, &modes_);
}

}  // namespace rlock::run
