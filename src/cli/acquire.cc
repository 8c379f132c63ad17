// SPDX-License-Identifier: MIT
// rlock acquire: take the lock for a fixed time, and print who owns it.
#include "cli/commands.h"

#include <cstdlib>

#include "base/log.h"
#include "cli/output.h"
#include "cli/server.h"
#include "cli/take.h"

namespace rlock::cli {

Result<int> execute(const AcquireOptions& options) {
  const char* held = std::getenv("RLOCK_HELD");
  if (lock::HeldLocks::parse(held ? held : "").owner_of(options.name)) {
    return fail(Error::Code::usage,
                options.name.display() +
                    ": this runs under a `rlock run` that holds the lock already, and would wait for it for ever");
  }
  run::SignalBlock signals = RLOCK_TRY(run::SignalBlock::begin());
  redis::Client client = RLOCK_TRY(client_for(options.common, signals.fd()));
  lock::AcquireRequest request{
      .name = options.name, .lease = options.lease, .holder = describe_self("rlock acquire", options.reason)};
  auto taken = take(client, std::move(request), options.wait, options.common, signals);
  if (!taken && taken.error().code == Error::Code::interrupted) end_by_signal(signals);
  const std::optional<lock::Hold> hold = RLOCK_TRY(std::move(taken));
  if (!hold) return options.wait.conflict_status;

  using Output = AcquireOptions::Output;
  auto printed = print(options.output == Output::json          ? hold_json(*hold)
                       : options.output == Output::assignments ? hold_assignments(*hold)
                                                               : hold->owner.text() + "\n");
  if (printed) return kDone;
  // Nobody has learned the owner id, so nobody could release the lock.
  auto released = lock::release(client, hold->name, hold->owner, hold->id, Until{}.at_most(options.common.timeout));
  if (!released) log::error(released.error().message);
  return std::unexpected(std::move(printed).error());
}

}  // namespace rlock::cli
