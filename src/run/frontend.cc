// SPDX-License-Identifier: MIT
#include "run/frontend.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "run/pidfd.h"
#include "run/timer.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

// How long after the deadline the frontend leaves the killing to the monitor, which can also release: a
// quarter of the second that the deadline keeps free for guards.
milliseconds patience(const lock::LeaseTiming& timing) { return lock::scaled(250ms, timing.lease); }

void pass_on(SignalBlock& signals, int control) {
  while (const auto signal = signals.next()) {
    if (signal->number == SIGCHLD || signal->from_terminal) continue;
    send(control, &signal->number, sizeof signal->number, MSG_NOSIGNAL);
  }
}

void stop_with_command(const Shared& shared, int control) {
  int packet;
  bool told = false;
  while (recv(control, &packet, sizeof packet, 0) > 0) told = true;
  // What was true when it was sent may be over: look.
  if (told && shared.command_stopped && shared.end().kind == JobEnd::Kind::none) raise(SIGSTOP);
}

// The monitor is gone without a word: nobody renews, and what is left of the tree has become ours.
JobEnd take_over(const Job& job) {
  log::error(job.hold.name.display() + ": the monitor of this job was killed; stopping the command");
  kill_all_descendants({});
  log::error(job.hold.name.display() + ": the command was stopped; the lock stays held until its lease runs out");
  return {JobEnd::Kind::lost, 0};
}

}  // namespace

void leave_standard_streams() {
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  // A stream that we were started without stays closed.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO}) {
    if (null && fcntl(stream, F_GETFD) >= 0) dup2(null.get(), stream);
  }
}

Result<JobEnd> run_frontend(const Job& job, SignalBlock& signals, Shared& shared, pid_t monitor, int control) {
  // If these fail there is still the monitor: it kills the tree when we die.
  const UniqueFd alive(pidfd_open(monitor, 0));
  if (!alive) return std::unexpected(system_error("pidfd_open"));
  Timer timer = RLOCK_TRY(Timer::make());
  leave_standard_streams();

  for (bool dead = false; !dead;) {
    const TimePoint act_at = shared.deadline() + patience(job.timing);
    if (!shared.tree_empty && BootClock::now() >= act_at) pidfd_send_signal(alive.get(), SIGKILL, nullptr, 0);
    timer.set(shared.tree_empty ? TimePoint::max() : act_at);
    pollfd watched[] = {
        {signals.fd(), POLLIN, 0}, {alive.get(), POLLIN, 0}, {control, POLLIN, 0}, {timer.fd(), POLLIN, 0}};
    poll(watched, std::size(watched), -1);
    dead = watched[1].revents != 0;
    pass_on(signals, control);
    if (!dead) stop_with_command(shared, control);
  }

  const JobEnd end = shared.end();
  if (end.kind == JobEnd::Kind::none) return take_over(job);
  while (waitpid(monitor, nullptr, 0) < 0 && errno == EINTR) {
  }
  return end;
}

}  // namespace rlock::run
