// SPDX-License-Identifier: MIT
// rlock renew: let the lease of an acquired lock start anew.
#include "cli/commands.h"
#include "cli/server.h"
#include "lock/verbs.h"

namespace rlock::cli {

Result<int> execute(const RenewOptions& options) {
  redis::Client client = RLOCK_TRY(client_for(options.common));
  const Until until = Until{}.at_most(options.common.timeout);
  auto outcome = lock::renew(client, options.name, options.owner, options.lease, until);
  // Renewing twice does no harm.
  if (!outcome && outcome.error().code == Error::Code::unavailable && outcome.error().maybe_executed) {
    outcome = lock::renew(client, options.name, options.owner, options.lease, until);
  }
  const std::string name = options.name.display();
  switch (RLOCK_TRY(std::move(outcome))) {
    case lock::RenewOutcome::renewed: return kDone;
    case lock::RenewOutcome::free:
      return fail(Error::Code::wrong_kind, name + ": not held: its lease ran out, or it was released");
    case lock::RenewOutcome::other_owner:
      return fail(Error::Code::wrong_kind, name + ": not renewed: another owner holds it");
    case lock::RenewOutcome::lease_unknown: break;
  }
  return fail(Error::Code::usage, name + ": it was not granted by rlock, so say --lease DUR");
}

}  // namespace rlock::cli
