// SPDX-License-Identifier: MIT
// rlock acquire: takes locks for a fixed time or for a process, and prints the owner id.
#include <algorithm>

#include "base/log.h"
#include "cli/acquisition.h"
#include "cli/commands.h"
#include "cli/self.h"
#include "cli/server.h"
#include "options/passwords.h"
#include "run/keeper.h"
#include "show/json.h"
#include "show/print.h"
#include "show/shell.h"

namespace rlock::cli {
namespace {

Result<void> expect_not_nested(const std::vector<lock::LockName>& names) {
  const lock::AncestorLocks held = held_by_ancestors();
  for (const lock::LockName& name : names) {
    if (!held.owner_of(name)) continue;
    return fail(
        Error::Code::usage,
        name.display() + ": this runs under an `rlock run` that already holds the lock, so it would wait forever");
  }
  return {};
}

Result<void> print_holds(AcquireOptions::Output output, const std::vector<lock::Hold>& holds) {
  if (output == AcquireOptions::Output::assignments) return print_assignments(holds);
  const bool json = output == AcquireOptions::Output::json;
  return print(json ? holds_json(holds) : holds.front().owner.text() + "\n");
}

// Releases locks whose owner id could not be printed, because nobody else could release them.
Error give_back(lock::Servers& servers, const std::vector<lock::Hold>& holds, milliseconds exchange, Error why) {
  for (const lock::Hold& hold : holds) {
    auto released = servers->release(hold, Until{}.at_most(exchange));
    if (!released) log::error(released.error().message);
  }
  return why;
}

// False if no lock was acquired; the reason has been reported.
Result<bool> acquire(AcquireOptions& options, const lock::LeaseTiming& timing, const UniqueFd& watched,
                     const run::Inherited& inherited, run::SignalBlock& signals) {
  lock::HolderInfo holder = describe_self("rlock acquire", options);
  holder.in_history = options.history;
  if (options.for_pid) {
    // Users who look at the holder want to find the process that the lock is for.
    holder.command = "rlock acquire --for-pid";
    holder.pid = *options.for_pid;
    holder.listens = true;
    holder.renewal = timing.lease;
  }
  lock::Servers servers = RLOCK_TRY(client_for(options, signals.fd()));
  const Acquisition acquisition = acquisition_for(options, holder, options.lease, timing.renew_at, signals.fd());
  const std::vector<lock::Hold> holds = RLOCK_TRY(acquire_and_report(servers, acquisition, Events())).holds;
  if (holds.empty()) return false;
  const auto in_history = options.history ? std::optional(holder) : std::nullopt;
  auto keeper = options.for_pid ? run::Keeper::launch(holds, timing, servers, watched, inherited, signals, in_history)
                                : Result<run::Keeper>();
  if (!options.for_pid) servers.complete(holds);
  auto told = keeper ? print_holds(options.output, holds) : std::unexpected(keeper.error());
  if (!told) return std::unexpected(give_back(servers, holds, options.timeout, std::move(told).error()));
  if (options.for_pid) keeper->begin();  // only after the output succeeded
  return true;
}

// A shell that evaluates our output must not continue without the lock, even if -E 0 makes that a success.
int print_failure(AcquireOptions::Output output, int status) {
  if (output == AcquireOptions::Output::assignments) cli::print_failure(status != 0 ? status : kNotAcquired);
  return status;
}

}  // namespace

Result<int> execute(AcquireOptions& options) {
  RLOCK_TRY(expect_not_nested(options.names));
  // For renewals by a keeper, or while waiting for further locks.
  const milliseconds most =
      options.mode.kind == lock::Mode::Kind::read ? lock::kLongestReaderLease : milliseconds::max();
  const auto timing = RLOCK_TRY(lock::LeaseTiming::make(std::min(options.lease, most), 0ms));
  const auto inherited = run::Inherited::look();
  UniqueFd watched;
  if (options.for_pid) watched = RLOCK_TRY(run::watch_process(*options.for_pid));
  run::SignalBlock signals = RLOCK_TRY(run::SignalBlock::begin());

  const auto acquired = acquire(options, timing, watched, inherited, signals);
  if (acquired && *acquired) return kDone;
  if (acquired) return print_failure(options.output, options.wait.conflict_status);
  if (acquired.error().code != Error::Code::interrupted) return std::unexpected(acquired.error());
  const int signal = ending_signal(signals);
  print_failure(options.output, 128 + signal);
  run::die_of(signal);
}

}  // namespace rlock::cli
