// SPDX-License-Identifier: MIT
#include "run/run_job.h"

#include "run/frontend.h"
#include "run/release.h"

namespace rlock::run {
namespace {

Result<void> have_guards(std::unique_ptr<Guards>& guards, const Job& job, lock::Servers& client, SignalBlock& signals) {
  // Whatever comes from now on is for the guards to pass on.
  RLOCK_TRY(signals.hold_all());
  if (guards && guards->fit(job.holds)) return {};
  guards.reset();
  // The command would begin at once, and might have ended before it could be told.
  if (signals.was_asked_to_end()) return fail(Error::Code::interrupted, "interrupted");
  // The process that makes a namespace may be looked into by others of the same user: it gets no connection.
  guards =
      RLOCK_TRY(job.isolate ? Guards::start_ahead(job, client, signals, [] {}) : Guards::start(job, client, signals));
  return {};
}

}  // namespace

Result<JobEnd> run_job(const Job& job, std::unique_ptr<Guards> guards, lock::Servers client, SignalBlock& signals) {
  // Before the command can change it.
  const TerminalState terminal = TerminalState::look();
  if (auto there = have_guards(guards, job, client, signals); !there) {
    release_all(client, job);
    return std::unexpected(std::move(there).error());
  }
  return run_frontend(job, signals, *guards, client, terminal);
}

}  // namespace rlock::run
