// SPDX-License-Identifier: MIT
// rlock renew: let the lease of acquired locks start anew.
#include "base/duration.h"
#include "base/log.h"
#include "cli/any_kind.h"
#include "cli/commands.h"
#include "cli/each_name.h"
#include "cli/server.h"
#include "lock/quorum.h"

namespace rlock::cli {
namespace {

Result<void> renew(lock::Servers& client, const RenewOptions& options, const lock::LockName& lock_name) {
  const auto outcome = with_any_kind(lock_name, [&](const lock::Lock& lock) {
    return lock::renew(client, lock, *options.owner, options.lease, lock::Attempts::until_deadline,
                       Until{}.at_most(options.timeout));
  });
  const std::string name = lock_name.display();
  if (!outcome) return std::unexpected(Error(outcome.error()).in(name));
  switch (outcome->outcome) {
    case lock::RenewOutcome::renewed:
      log::debug(name + ": renewed, with " + rough_duration(outcome->found) + " left of it");
      return {};
    case lock::RenewOutcome::free:
      return fail(Error::Code::wrong_kind, name + ": not held: its lease ran out, or it was released");
    case lock::RenewOutcome::other_owner:
      return fail(Error::Code::wrong_kind, name + ": not renewed: another owner holds it");
    case lock::RenewOutcome::other_kind:
      return fail(Error::Code::wrong_kind, name + ": not renewed: its name is in use for " + outcome->instead.text());
    case lock::RenewOutcome::lease_unknown: break;
  }
  return fail(Error::Code::usage, name + ": it was not granted by rlock, so say --lease DUR");
}

}  // namespace

Result<int> execute(const RenewOptions& options) {
  lock::Servers client = RLOCK_TRY(client_for(options));
  return for_each_name(options.names, [&](const lock::LockName& name) { return renew(client, options, name); });
}

}  // namespace rlock::cli
