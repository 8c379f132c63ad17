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

// Has the frontend go on as soon as there is something to do for it.
[[noreturn]] void wake_in_need(pid_t frontend, const GuardState& shared, FrontendTimer& timer, int monitor) {
  die_with(frontend);
  setpgid(0, 0);  // what stops the others must not stop this one
  for (bool dead = false; !dead && timer.set_for(shared);) {
    pollfd watched[] = {{monitor, POLLIN, 0}, {timer.fd(), POLLIN, 0}};
    poll(watched, std::size(watched), -1);
    dead = watched[0].revents != 0;
  }
  // Again and again: it may just be about to stop. Its end of the wait is our end.
  for (;;) {
    kill(frontend, SIGCONT);
    wait_for(-1, 0, Until{}.at_most(kWakeAgain));
  }
}

// The stop that the monitor has told of may be over, and the monitor may be slow to learn that: a job that has just
// been brought to the foreground would be stopped again. The kernel knows.
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
    // A shell lets the job go on once; to stop now would take that away.
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
