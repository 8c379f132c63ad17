// SPDX-License-Identifier: MIT
#include "run/job.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "base/log.h"
#include "run/frontend.h"
#include "run/monitor.h"
#include "run/tree.h"

namespace rlock::run {
namespace {

struct Guards {
  Shared* shared = nullptr;
  UniqueFd frontend_end, monitor_end;
  FrontendParts parts;
  pid_t monitor = -1;  // 0 in the monitor itself
};

Result<Guards> fork_guards(const Job& job, SignalBlock& signals) {
  Guards guards;
  RLOCK_TRY(signals.hold_all());
  guards.shared = RLOCK_TRY(Shared::map());
  guards.shared->set_deadline(oldest(job.holds) + job.timing.kill_at);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return std::unexpected(system_error("socketpair"));
  }
  guards.frontend_end = UniqueFd(ends[0]);
  guards.monitor_end = UniqueFd(ends[1]);
  guards.parts = RLOCK_TRY(FrontendParts::make());
  RLOCK_TRY(become_subreaper());
  guards.monitor = fork();
  if (guards.monitor < 0) return std::unexpected(system_error("cannot start a process"));
  return guards;
}

}  // namespace

Result<Shared*> Shared::map() {
  void* page = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return std::unexpected(system_error("mmap"));
  return new (page) Shared;
}

TimePoint runs_out_at(const Job& job, const Shared& shared) {
  return shared.deadline() - job.timing.kill_at + std::max(job.timing.lease, job.min_hold);
}

Result<JobEnd> run_job(const Job& job, redis::Client client, SignalBlock& signals) {
  const pid_t frontend = getpid();
  auto guards = fork_guards(job, signals);
  if (!guards) {
    for (const lock::Hold& hold : job.holds) {
      auto released = lock::release(client, hold, Until{}.at_most(job.exchange));
      if (!released) log::warning(released.error().message + "; the lease of the lock runs out");
    }
    return std::unexpected(std::move(guards).error());
  }
  if (guards->monitor == 0) {
    guards->frontend_end.reset();
    run_monitor(job, client, signals, *guards->shared, frontend, guards->monitor_end.get());
  }
  guards->monitor_end.reset();
  client.forget();
  return run_frontend(job, signals, *guards->shared, std::move(guards->parts), guards->monitor,
                      guards->frontend_end.get());
}

}  // namespace rlock::run
