// SPDX-License-Identifier: MIT
// rlock renew: extends the leases of acquired locks.
#include "base/duration.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/each_lock.h"
#include "cli/server.h"
#include "lock/servers.h"

namespace rlock::cli {

Result<int> execute(RenewOptions& options) {
  lock::Servers servers = RLOCK_TRY(client_for(options));
  return for_each_lock(options, [&](const lock::LockName& name) -> Result<void> {
    const auto renewed = RLOCK_TRY(with_any_kind(name, [&](const lock::Lock& lock) {
      return servers->renew(lock, *options.owner, options.lease, Until{}.at_most(options.timeout));
    }));
    using Outcome = lock::RenewOutcome;
    switch (renewed.outcome) {
      case Outcome::renewed:
        log::debug(name.display() + ": renewed, with " + rough_duration(renewed.found) + " left of the lease");
        return {};
      case Outcome::free: return fail(Error::Code::wrong_kind, "not held: its lease has expired, or it was released");
      case Outcome::other_owner: return fail(Error::Code::wrong_kind, "not renewed: another owner holds it");
      case Outcome::other_kind:
        return fail(Error::Code::wrong_kind, "not renewed: its name is in use for " + renewed.instead.text());
      case Outcome::over:
        return fail(Error::Code::wrong_kind,
                    "not renewed: it has passed a job that could run now, so release it (--backfill)");
      case Outcome::lease_unknown: break;
    }
    return fail(Error::Code::usage, "it was not granted by rlock, so give --lease DUR");
  });
}

}  // namespace rlock::cli
