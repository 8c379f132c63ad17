// SPDX-License-Identifier: MIT
#include "run/frontend.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "run/pidfd.h"
#include "run/termination.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

// How long after the deadline the frontend leaves the killing to the monitor, which can also release: a
// quarter of the second that the deadline keeps free for guards.
milliseconds patience(const lock::LeaseTiming& timing) { return lock::scaled(250ms, timing.lease); }

// Also the end of children that are not ours: as process 1 of a container we are the parent of all orphans.
void reap_all() {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

void pass_on(SignalBlock& signals, int control) {
  while (const auto signal = signals.next()) {
    if (signal->number == SIGCHLD) {
      reap_all();
      continue;
    }
    const PassedSignal packet{signal->number, signal->from_terminal};
    send(control, &packet, sizeof packet, MSG_NOSIGNAL);
  }
}

void stop_with_command(const Shared& shared, int control) {
  PassedSignal packet;
  bool told = false;
  while (recv(control, &packet, sizeof packet, 0) > 0) told = true;
  // What was true when it was sent may be over: look.
  if (told && shared.command_stopped && shared.end().kind == JobEnd::Kind::none) raise(SIGSTOP);
}

// The monitor is gone without a word: nobody renews, and what is left of the tree has become ours.
JobEnd take_over(const Job& job, Shared& shared, const std::string& why) {
  const std::string name = job.hold.name.display();
  log::error(name + ": " + why + "; stopping the command");
  shared.set_why_lost(why);
  job.report({LockEvent::Kind::lost, why, 0ms});
  kill_all_descendants({});
  log::error(name + ": the command was stopped; the lock stays held until its lease runs out");
  return {JobEnd::Kind::lost, 0};
}

// Nothing of the tree is left: this is for those who have to know.
void run_on_lost(const Job& job, const Shared& shared, SignalBlock& signals) {
  const std::string name = job.hold.name.display();
  std::vector<std::string> environment = {"RLOCK_WHY=" + shared.why_lost()};
  environment.insert(environment.end(), job.command.environment.begin(), job.command.environment.end());
  const auto hook = start_hook(job.hooks.on_lost, environment, job.inherited.folder(), signals);
  if (!hook) return log::warning(name + ": --on-lost: " + hook.error().message);

  const Until end = Until{}.at_most(job.hooks.limit);
  int status = 0;
  bool stop = false;
  while (waitpid(*hook, &status, WNOHANG) == 0 && !stop) {
    stop = wait_for(signals.fd(), POLLIN, end) == WaitEnd::deadline;
    while (const auto signal = signals.next()) stop = stop || asks_to_end(signal->number);
  }
  kill_all_descendants({});
  const std::string trouble = stop ? "was stopped before its end" : trouble_of(status);
  if (!trouble.empty()) log::warning(name + ": --on-lost " + trouble);
}

}  // namespace

Result<FrontendParts> FrontendParts::make() {
  FrontendParts parts{.timer = RLOCK_TRY(Timer::make()), .reserved = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC))};
  if (!parts.reserved) return std::unexpected(system_error("/dev/null"));
  return parts;
}

Result<JobEnd> run_frontend(const Job& job, SignalBlock& signals, Shared& shared, FrontendParts parts, pid_t monitor,
                            int control) {
  parts.reserved.reset();
  // If this fails there is still the monitor: it kills the tree when we die.
  const UniqueFd alive(pidfd_open(monitor, 0));
  if (!alive) return std::unexpected(system_error("pidfd_open"));
  job.inherited.let_go();

  std::string why = "the monitor of this job was killed";
  for (bool dead = false; !dead;) {
    // A monitor that goes on killing is alive: without it nobody would keep the lock until the last one has died.
    const TimePoint act_at =
        std::max(shared.deadline(), shared.last_killing() + 2 * kLongestLook) + patience(job.timing);
    if (!shared.tree_empty && BootClock::now() >= act_at) {
      why = "the monitor of this job has let the deadline pass";
      pidfd_send_signal(alive.get(), SIGKILL, nullptr, 0);
    }
    parts.timer.set(shared.tree_empty ? TimePoint::max() : act_at);
    pollfd watched[] = {
        {signals.fd(), POLLIN, 0}, {alive.get(), POLLIN, 0}, {control, POLLIN, 0}, {parts.timer.fd(), POLLIN, 0}};
    poll(watched, std::size(watched), -1);
    dead = watched[1].revents != 0;
    pass_on(signals, control);
    if (!dead) stop_with_command(shared, control);
  }

  const JobEnd end = shared.end().kind == JobEnd::Kind::none ? take_over(job, shared, why) : shared.end();
  reap_all();
  if (end.kind == JobEnd::Kind::lost && !job.hooks.on_lost.empty()) run_on_lost(job, shared, signals);
  return end;
}

}  // namespace rlock::run
