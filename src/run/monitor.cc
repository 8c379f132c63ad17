// SPDX-License-Identifier: MIT
#include "run/monitor.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "base/log.h"
#include "run/release.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

// Leaves the group, out of reach of Ctrl-C, Ctrl-Z and `kill -9 -GROUP`, and leaves the session, because with a parent
// in it a shell seems to control the group. Without a controlling shell this would have three effects: Ctrl-Z would
// stop what nobody can continue; a stopped job would not be hung up on when its shell exits; and if the command ended
// while a member of the group is stopped, the kernel would hang up on the whole group, even the script that called us
// (POSIX, _Exit()).
// But hooks inherit our session, and with a shell they need the one that has the terminal.
void leave_group(const Hooks& hooks) {
  const bool any = !hooks.on_acquire.empty() || !hooks.on_release.empty();
  if (any && !group_is_orphaned()) {
    setpgid(0, 0);
  } else {
    setsid();
  }
}

// Makes this process the monitor: a subreaper outside of the process group, with the command behind its gate, which is
// open if there is nothing to wait for. Errors: system (also if the frontend has died); then nothing was executed.
Result<Watched> become_monitor(const JobContext& context, const ForkedBy& frontend) {
  const auto& [job, client, signals, shared] = context;
  RLOCK_TRY(become_subreaper());
  RLOCK_TRY(signals.read_children_only());
  Timer own_timer = RLOCK_TRY(Timer::make());
  prctl(PR_SET_PDEATHSIG, SIGCONT);  // even a stopped monitor must act when the frontend dies
  FrontendLink link = RLOCK_TRY(FrontendLink::open(frontend));
  client.keep_password_from_children();
  LockWatch watch = RLOCK_TRY(LockWatch::make(context));
  const Deadlines deadlines(job.timing, shared.promise());
  const bool open = !frontend.ahead && Life::may_start_at_once(job.plan(), deadlines, BootClock::now());
  shared.begun = open;
  // Forked before this process has threads, and before it leaves the process group.
  auto gated = GatedCommand::fork_from_here(job.command, signals, shared, job.isolate, open);
  if (!gated) {
    shared.begun = false;
    return std::unexpected(std::move(gated).error());
  }
  // The command may run now, so nothing below may fail.
  if (!frontend.ahead) gated->note_missed();
  leave_group(job.hooks);
  job.inherited.let_go();
  return Watched{std::move(own_timer), std::move(link), *std::move(gated), std::move(watch)};
}

// For a job that was not started: reaps everything. If the frontend was killed, nobody else can release the lock.
void abandon(const JobContext& context, pid_t frontend) {
  for (;;) {
    const pid_t pid = waitpid(-1, nullptr, WNOHANG);
    if (pid < 0 && errno != EINTR) break;
    if (pid == 0) wait_for(context.signals.fd(), POLLIN, Until{}.at_most(1ms));
  }
  if (getppid() != frontend) release_unseen(context.client, context.job);
}

}  // namespace

void run_monitor(const JobContext& context, const ForkedBy& frontend) {
  log::hold_for_full_screen();
  const pid_t group = getpgrp();
  auto watched = become_monitor(context, frontend);
  const Result<JobEnd> end = watched ? see_job_through(context, group, *watched, frontend.ahead)
                                     : Result<JobEnd>(std::unexpected(watched.error()));
  if (end) {
    context.shared.set_end(*end);
  } else {
    watched = std::unexpected(end.error());  // the command's gate closes
    abandon(context, frontend.pid);
    context.shared.set_why(end.error().message);  // the frontend reports it, and releases the lock if it has it
  }
  log::say_held();
  if (watched) watched->frontend.wake();  // it may have stopped with the command, but has something to report
  _exit(0);
}

}  // namespace rlock::run
