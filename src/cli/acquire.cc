// SPDX-License-Identifier: MIT
// rlock acquire: take the lock for a fixed time or for a process, and print who owns it.
#include <algorithm>

#include "base/log.h"
#include "cli/acquisition.h"
#include "cli/commands.h"
#include "options/ending_signal.h"
#include "show/json.h"
#include "show/shell.h"
#include "show/print.h"
#include "cli/self.h"
#include "cli/server.h"
#include "run/keeper.h"

namespace rlock::cli {
namespace {

lock::HolderInfo describe_holder(const AcquireOptions& options, const lock::LeaseTiming& timing) {
  lock::HolderInfo holder = describe_self("rlock acquire", options.reason);
  holder.in_history = options.history;
  if (options.for_pid) {
    // A user who asks for the holder wants to find the process that the lock is for.
    holder.command = "rlock acquire --for-pid";
    holder.pid = *options.for_pid;
    holder.listens = true;
    holder.renewal = timing.lease;
  }
  return holder;
}

std::vector<lock::AcquireRequest> requests_for(const AcquireOptions& options, const lock::LeaseTiming& timing) {
  const lock::HolderInfo holder = describe_holder(options, timing);
  std::vector<lock::AcquireRequest> requests;
  for (const lock::LockName& name : options.names) {
    requests.push_back({.name = name, .mode = options.mode, .lease = options.lease, .holder = holder});
  }
  return requests;
}

// How it is renewed, by a keeper or while other locks are waited for.
Result<lock::LeaseTiming> timing_of(const AcquireOptions& options) {
  const bool reader = options.mode.kind == lock::Mode::Kind::read;
  return lock::LeaseTiming::make(reader ? std::min(options.lease, lock::kLongestReaderLease) : options.lease, 0ms);
}

Result<void> print_holds(const AcquireOptions& options, const std::vector<lock::Hold>& holds) {
  switch (options.output) {
    case AcquireOptions::Output::assignments: return print_assignments(holds);
    case AcquireOptions::Output::json: return print(holds_json(holds));
    case AcquireOptions::Output::owner: break;
  }
  return print(holds.front().owner.text() + "\n");
}

// That no lock was acquired, for a shell that evaluates what we print: it must not go on without the lock, also where
// -E 0 makes a busy one a success.
int not_acquired(const AcquireOptions& options, int status) {
  if (options.output == AcquireOptions::Output::assignments) print_failure(status != 0 ? status : kNotAcquired);
  return status;
}

// Tells the caller whose the lock is; with --for-pid to the keeper, once the caller knows.
Result<void> hand_over(const AcquireOptions& options, const std::vector<lock::Hold>& holds,
                       const lock::LeaseTiming& timing, lock::Servers& client, const UniqueFd& watched,
                       const run::Inherited& inherited, run::SignalBlock& signals) {
  if (!options.for_pid) {
    lock::complete(client, holds);
    return print_holds(options, holds);
  }
  const auto in_history = options.history ? std::optional(describe_holder(options, timing)) : std::nullopt;
  auto keeper = RLOCK_TRY(run::Keeper::launch(holds, timing, client, watched, inherited, signals, in_history));
  RLOCK_TRY(print_holds(options, holds));
  keeper.begin();
  return {};
}

}  // namespace

Result<int> execute(const AcquireOptions& options) {
  const lock::AncestorLocks held = held_by_ancestors();
  for (const lock::LockName& name : options.names) {
    if (!held.owner_of(name)) continue;
    return fail(Error::Code::usage,
                name.display() +
                    ": this runs under an `rlock run` that holds the lock already, and would wait for it for ever");
  }
  const auto timing = RLOCK_TRY(timing_of(options));
  const auto inherited = run::Inherited::look();
  UniqueFd watched;
  if (options.for_pid) watched = RLOCK_TRY(run::watch_process(*options.for_pid));
  run::SignalBlock signals = RLOCK_TRY(run::SignalBlock::begin());
  const auto end_by_signal = [&] {
    const int signal = ending_signal(signals);
    not_acquired(options, 128 + signal);
    run::die_of(signal);
  };
  auto made = client_for(options, signals.fd());
  if (!made && made.error().code == Error::Code::interrupted) end_by_signal();
  lock::Servers client = RLOCK_TRY(std::move(made));
  const Events unwatched;
  auto acquired = acquire_and_report(client, requests_for(options, timing), timing.renew_at, options, signals, unwatched);
  if (!acquired && acquired.error().code == Error::Code::interrupted) end_by_signal();
  const std::vector<lock::Hold> holds = RLOCK_TRY(std::move(acquired));
  if (holds.empty()) return not_acquired(options, options.wait.conflict_status);

  auto handed_over = hand_over(options, holds, timing, client, watched, inherited, signals);
  if (handed_over) return kDone;
  // Nobody has learned the owner id, so nobody could release the lock.
  for (const lock::Hold& hold : holds) {
    auto released = lock::release(client, hold, Until{}.at_most(options.timeout));
    if (!released) log::error(released.error().message);
  }
  return std::unexpected(std::move(handed_over).error());
}

}  // namespace rlock::cli
