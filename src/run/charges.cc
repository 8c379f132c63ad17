// SPDX-License-Identifier: MIT
#include "run/charges.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iterator>
#include <utility>

#include "run/release.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

// Out of reach of Ctrl-C, Ctrl-Z and `kill -9 -GROUP`, and out of the session: a parent in it would make the group
// one that a shell seems to control. Where none does, Ctrl-Z would stop what nobody could let go on; a job that is
// stopped would not be hung up on when its shell goes away; and if the command ended while somebody in the group is
// stopped, the kernel would hang up on all of it, the script that has called us included (POSIX, _Exit()). But hooks
// get their session from us: with a shell there, it has to be the one with the terminal.
void leave_group(const Hooks& hooks) {
  const bool any = !hooks.on_acquire.empty() || !hooks.on_release.empty();
  if (any && !group_is_orphaned()) {
    setpgid(0, 0);
  } else {
    setsid();
  }
}

// Nothing speaks against the start: the lock is there, and this machine has not slept since.
bool may_start(const Job& job, const GuardState& shared, bool ahead) {
  const bool in_time = BootClock::now() < Deadlines(job.timing, shared.promise()).terminate_at();
  return !ahead && job.hooks.on_acquire.empty() && in_time;
}

}  // namespace

Result<Charges> Charges::take(const Job& job, lock::Servers& client, SignalBlock& signals, GuardState& shared,
                              const ForkedBy& frontend) {
  RLOCK_TRY(become_subreaper());
  RLOCK_TRY(signals.read_children_only());
  Timer own_timer = RLOCK_TRY(Timer::make());
  prctl(PR_SET_PDEATHSIG, SIGCONT);  // a monitor that is stopped has work to do when the frontend dies
  FrontendLink link = RLOCK_TRY(FrontendLink::open(frontend));
  client.keep_password_from_children();
  LockWatch watch = RLOCK_TRY(LockWatch::make(job, client, shared));
  const bool open = may_start(job, shared, frontend.ahead);
  shared.begun = open;
  // Forked before this process has a thread, and before it leaves the frontend's process group.
  auto gated = GatedCommand::fork_from_here(job.command, signals, shared, job.isolate, open);
  if (!gated) {
    shared.begun = false;
    return std::unexpected(std::move(gated).error());
  }
  // The command may run from here on: nothing below may fail.
  if (!frontend.ahead) gated->note_missed();
  leave_group(job.hooks);
  job.inherited.let_go();
  return Charges{std::move(own_timer), std::move(link), *std::move(gated), std::move(watch)};
}

Charges::Ready Charges::wait(SignalBlock& signals, TimePoint next, bool frontend_lives, bool lock_kept) {
  timer.set(next);
  pollfd watched[] = {{signals.fd(), POLLIN, 0},
                      {timer.fd(), POLLIN, 0},
                      {lock_kept ? lock.lost_fd() : -1, POLLIN, 0},
                      {lock_kept ? lock.asked_fd() : -1, POLLIN, 0},
                      {frontend_lives ? frontend.died_fd() : -1, POLLIN, 0},
                      {frontend_lives ? frontend.guard_socket() : -1, POLLIN, 0},
                      {lock.moved_fd(), POLLIN, 0}};
  poll(watched, std::size(watched), -1);
  while (signals.next()) {
  }
  if (watched[6].revents) lock.take_move();
  return {watched[4].revents != 0, watched[5].revents != 0, watched[6].revents != 0};
}

void abandon(const Job& job, lock::Servers& client, const SignalBlock& signals, pid_t frontend) {
  for (;;) {
    const pid_t pid = waitpid(-1, nullptr, WNOHANG);
    if (pid < 0 && errno != EINTR) break;
    if (pid == 0) wait_for(signals.fd(), POLLIN, Until{}.at_most(1ms));
  }
  if (getppid() != frontend) release_unseen(client, job);
}

}  // namespace rlock::run
