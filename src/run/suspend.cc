// SPDX-License-Identifier: MIT
#include "run/suspend.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iterator>

#include "base/wait.h"
#include "run/signals.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

// Has the frontend go on as soon as there is something to do for it.
[[noreturn]] void wake_in_need(pid_t frontend, const GuardState& shared, FrontendTimer& timer, int monitor) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != frontend) _exit(0);
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
    const pid_t frontend = getpid(), stand_in = fork();
    if (stand_in == 0) wake_in_need(frontend, shared, timer, monitor);
    // A shell lets the job go on once; to stop now would take that away.
    stops = !was_continued();
    if (stops) stop_by(signal);
    if (stand_in > 0) {
      kill(stand_in, SIGKILL);
      waitpid(stand_in, nullptr, 0);
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

}  // namespace rlock::run
