// SPDX-License-Identifier: MIT
#include "run/job_control.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iterator>

#include "base/process.h"
#include "base/wait.h"
#include "run/signals.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

// Guards in place of the stopped frontend, and wakes it when there is something to do.
[[noreturn]] void wake_in_need(pid_t frontend, const GuardState& shared, FrontendTimer& timer, int monitor) {
  die_with(frontend);
  setpgid(0, 0);  // so that it is not stopped like the others
  for (bool dead = false; !dead && timer.set_for(shared);) {
    pollfd watched[] = {{monitor, POLLIN, 0}, {timer.fd(), POLLIN, 0}};
    poll(watched, std::size(watched), -1);
    dead = watched[0].revents != 0;
  }
  // Repeatedly, because the frontend may just be about to stop. It kills us when it continues.
  for (;;) {
    kill(frontend, SIGCONT);
    wait_for(-1, 0, Until{}.at_most(kWakeAgain));
  }
}

// Asks the kernel, because the monitor may be slow to notice that the stop is over. A job that was just brought to the
// foreground would be stopped again.
bool still_stopped(const GuardState& shared) {
  const pid_t pid = shared.stopped;
  return pid != 0 && !is_running(pid);
}

}  // namespace

bool stop_with_command(int signal, GuardState& shared, FrontendTimer& timer, int monitor) {
  bool stops = true;
  shared.frontend_stopped = true;
  if (still_stopped(shared) && shared.end().kind == JobEnd::Kind::none) {
    const auto stand_in = spawn([&, frontend = getpid()] { wake_in_need(frontend, shared, timer, monitor); });
    // A shell continues a job only once, and stopping now would undo that.
    stops = !was_continued();
    if (stops) stop_by(signal);
    if (stand_in) {
      kill(*stand_in, SIGKILL);
      reap(*stand_in);
    }
  }
  shared.frontend_stopped = false;
  return stops;
}

int note_stop(GuardState& shared, pid_t pid, int status) {
  const bool stopped = WIFSTOPPED(status);
  shared.stopped = stopped ? pid : 0;
  return stopped ? WSTOPSIG(status) : 0;
}

bool stopped_alone(const GuardState& shared) { return shared.frontend_stopped && shared.stopped == 0; }

TerminalState TerminalState::look() {
  // tcgetsid(3) succeeds only for our controlling terminal.
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
  // Not after the output is written, because Ctrl-S may hold that up forever.
  if (foreground == ours) tcsetattr(terminal_.get(), TCSANOW, &modes_);
}

}  // namespace rlock::run
