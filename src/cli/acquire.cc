// SPDX-License-Identifier: MIT
// rlock acquire: take the lock for a fixed time or for a process, and print who owns it.
#include "cli/commands.h"

#include "base/log.h"
#include "cli/output.h"
#include "cli/server.h"
#include "cli/take.h"
#include "run/keeper.h"

namespace rlock::cli {
namespace {

lock::AcquireRequest request_for(const AcquireOptions& options) {
  lock::AcquireRequest request{
      .name = options.name, .lease = options.lease, .holder = describe_self("rlock acquire", options.reason)};
  if (options.for_pid) {
    // Who asks for the holder wants to find the process that the lock is for.
    request.holder.command = "rlock acquire --for-pid";
    request.holder.pid = *options.for_pid;
    request.holder.listens = true;
  }
  return request;
}

Result<void> print_hold(const AcquireOptions& options, const lock::Hold& hold) {
  using Output = AcquireOptions::Output;
  return print(options.output == Output::json          ? hold_json(hold)
               : options.output == Output::assignments ? hold_assignments(hold)
                                                       : hold.owner.text() + "\n");
}

// Tells the caller whose the lock is; with --for-pid to the keeper, once the caller knows.
Result<void> hand_over(const AcquireOptions& options, const lock::Hold& hold, redis::Client& client,
                       const UniqueFd& watched, const run::Inherited& inherited, run::SignalBlock& signals) {
  if (!options.for_pid) return print_hold(options, hold);
  const auto timing = RLOCK_TRY(lock::LeaseTiming::make(options.lease, 0ms));
  auto keeper = RLOCK_TRY(run::Keeper::launch(hold, timing, client, watched, inherited, signals));
  RLOCK_TRY(print_hold(options, hold));
  keeper.begin();
  return {};
}

}  // namespace

Result<int> execute(const AcquireOptions& options) {
  if (held_by_ancestors().owner_of(options.name)) {
    return fail(Error::Code::usage,
                options.name.display() +
                    ": this runs under a `rlock run` that holds the lock already, and would wait for it for ever");
  }
  const auto inherited = run::Inherited::look();
  UniqueFd watched;
  if (options.for_pid) watched = RLOCK_TRY(run::watch_process(*options.for_pid));
  run::SignalBlock signals = RLOCK_TRY(run::SignalBlock::begin());
  redis::Client client = RLOCK_TRY(client_for(options.common, signals.fd()));
  auto taken = take(client, request_for(options), options.wait, options.common, signals, Events());
  if (!taken && taken.error().code == Error::Code::interrupted) run::die_of(ending_signal(signals));
  const std::optional<lock::Hold> hold = RLOCK_TRY(std::move(taken));
  if (!hold) return options.wait.conflict_status;

  auto handed_over = hand_over(options, *hold, client, watched, inherited, signals);
  if (handed_over) return kDone;
  // Nobody has learned the owner id, so nobody could release the lock.
  auto released = lock::release(client, hold->name, hold->owner, hold->id, Until{}.at_most(options.common.timeout));
  if (!released) log::error(released.error().message);
  return std::unexpected(std::move(handed_over).error());
}

}  // namespace rlock::cli
