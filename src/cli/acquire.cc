// SPDX-License-Identifier: MIT
// rlock acquire: takes locks for a fixed time or for a process, and prints the owner id.
#include <poll.h>

#include <array>

#include "cli/acquisition.h"
#include "cli/commands.h"
#include "cli/server.h"
#include "options/passwords.h"
#include "run/keeper.h"
#include "show/print.h"

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

// Errors: also interrupted, if a signal comes, or the process that the lock is for ends, before a reader that is stuck
// has room for the text, which is short.
Result<void> print_holds(AcquireOptions::Output output, const std::vector<lock::Hold>& holds, int interrupt) {
  const Until until{TimePoint::max(), interrupt};
  if (wait_for(STDOUT_FILENO, POLLOUT, until) == WaitEnd::interrupted) {
    return fail(Error::Code::interrupted, "interrupted while standard output was full");
  }
  if (output == AcquireOptions::Output::assignments) return print_assignments(holds);
  const bool json = output == AcquireOptions::Output::json;
  return print(json ? holds_json(holds) : holds.front().owner.text() + "\n");
}

lock::HolderInfo holder_of(const AcquireOptions& options, const lock::LeaseTiming& timing) {
  lock::HolderInfo holder = describe_self("rlock acquire", options);
  if (!options.for_pid) return holder;
  // Users who look at the holder want to find the process that the lock is for.
  holder.command = "rlock acquire --for-pid";
  holder.pid = *options.for_pid;
  holder.listens = true;
  holder.renewal = timing.lease;
  return holder;
}

// Nobody else could release locks whose owner id could not be printed.
void give_back(lock::Servers& servers, const std::vector<lock::Hold>& holds, milliseconds exchange) {
  for (const lock::Hold& hold : holds) {
    const auto released = servers->release(hold, Until{}.at_most(exchange));
    if (!released) log::error(released.error().message);
  }
}

// A shell that evaluates our output must not continue without the lock, even if -E 0 makes that a success.
int print_failure(AcquireOptions::Output output, int status) {
  if (output == AcquireOptions::Output::assignments) cli::print_failure(status != 0 ? status : kNotAcquired);
  return status;
}

// Returns the exit status; why no lock was acquired has been reported.
Result<int> acquire(AcquireOptions& options, const lock::LeaseTiming& timing, const UniqueFd& watched,
                    const run::Inherited& inherited, run::SignalBlock& signals) {
  const lock::HolderInfo holder = holder_of(options, timing);
  lock::Servers servers = RLOCK_TRY(client_for(options, signals.fd()));
  const UniqueFd nobody_waits =
      watched ? RLOCK_TRY(readable_with_any(std::array{signals.fd(), watched.get()})) : UniqueFd();
  const int interrupt = nobody_waits ? nobody_waits.get() : signals.fd();
  const Wanted wanted{holder, options.lease, timing.renew_at, interrupt};
  const lock::Taken taken = RLOCK_TRY(acquire_and_report(servers, options, wanted, Events()));
  const std::vector<lock::Hold>& holds = taken.holds;
  if (holds.empty()) return print_failure(options.output, status_of(taken.refusal, options.conflict_status));
  const auto in_history = options.history ? std::optional(holder) : std::nullopt;
  auto keeper = options.for_pid ? run::launch_keeper(holds, timing, servers, watched, inherited, signals, in_history)
                                : Result<UniqueFd>();
  if (!options.for_pid) servers.complete(holds);
  auto told = keeper ? print_holds(options.output, holds, interrupt) : std::unexpected(keeper.error());
  if (told) {
    if (options.for_pid) write_line(keeper->get(), "go");
    return kDone;
  }
  if (keeper) keeper->reset();  // which soon ends it, so that it hardly puts anything back after its release
  give_back(servers, holds, options.timeout);
  return std::unexpected(std::move(told).error());
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
  if (acquired || acquired.error().code != Error::Code::interrupted) return acquired;
  if (watched && wait_for(watched.get(), POLLIN, Until{}.at_most(0ms)) == WaitEnd::ready) {
    return fail(Error::Code::usage, "--for-pid: process " + std::to_string(*options.for_pid) +
                                        " has ended, so no lock was acquired for it");
  }
  const int signal = ending_signal(signals);
  print_failure(options.output, 128 + signal);
  run::die_of(signal);
}

}  // namespace rlock::cli
