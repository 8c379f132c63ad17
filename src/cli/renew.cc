// SPDX-License-Identifier: MIT
// rlock renew: let the lease of an acquired lock start anew.
#include "cli/commands.h"
#include "cli/server.h"
#include "lock/verbs.h"

namespace rlock::cli {

Result<int> execute(const RenewOptions& options) {
  redis::Client client = RLOCK_TRY(client_for(options.common));
  const auto outcome = lock::renew(client, options.name, options.owner, options.lease, lock::Attempts::until_deadline,
                                   Until{}.at_most(options.common.timeout));
  const std::string name = options.name.display();
  if (!outcome) return std::unexpected(Error(outcome.error()).in(name));
  switch (outcome->outcome) {
    case lock::RenewOutcome::renewed: return kDone;
    case lock::RenewOutcome::free:
      return fail(Error::Code::wrong_kind, name + ": not held: its lease ran out, or it was released");
    case lock::RenewOutcome::other_owner:
      return fail(Error::Code::wrong_kind, name + ": not renewed: another owner holds it");
    case lock::RenewOutcome::other_kind:
      return fail(Error::Code::wrong_kind, name + ": not renewed: it is in use as another kind of lock");
    case lock::RenewOutcome::lease_unknown: break;
  }
  return fail(Error::Code::usage, name + ": it was not granted by rlock, so say --lease DUR");
}

}  // namespace rlock::cli
