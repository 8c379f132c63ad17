// SPDX-License-Identifier: MIT
// rlock force-unlock: take a lock away from its holder, after showing who that is.
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/confirm.h"
#include "cli/output.h"
#include "cli/server.h"
#include "lock/verbs.h"

namespace rlock::cli {
namespace {

std::unexpected<Error> not_ours(const std::string& message) { return fail(Error::Code::wrong_kind, message); }

}  // namespace

Result<int> execute(const ForceUnlockOptions& options) {
  redis::Client client = RLOCK_TRY(client_for(options.common));
  const std::string name = options.name.display();
  const auto until = [&] { return Until{}.at_most(options.common.timeout); };

  const auto status = RLOCK_TRY(lock::inspect(client, options.name, until()));
  if (status.state == lock::Status::State::other_kind) {
    return not_ours(name + ": not a lock, but " + status.other_kind + "; left alone");
  }
  if (status.state == lock::Status::State::free) {
    RLOCK_TRY(print(name + ": not held\n"));
    return kDone;
  }
  const auto owner = lock::OwnerId::as_stored(status.owner);
  if (options.owner && *options.owner != owner) return not_ours(name + ": left alone: " + held_by(status));

  RLOCK_TRY(print(status_in_full(status)));
  if (!options.yes && !RLOCK_TRY(confirm("Take this lock away? A command under it may still run."))) {
    RLOCK_TRY(print("left alone\n"));
    return kDone;
  }
  const auto released = RLOCK_TRY(lock::force_unlock(client, options.name, owner, until()));
  if (!released.fault.empty()) log::warning(name + ": waiters could not be told: " + escaped(released.fault, 200));
  switch (released.outcome) {
    case lock::ReleaseOutcome::other_owner: return not_ours(name + ": left alone: it has got another owner meanwhile");
    case lock::ReleaseOutcome::other_kind: return not_ours(name + ": left alone: it is another kind of lock by now");
    case lock::ReleaseOutcome::free: RLOCK_TRY(print(name + ": free by itself meanwhile\n")); break;
    case lock::ReleaseOutcome::released: RLOCK_TRY(print(name + ": free\n")); break;
  }
  return kDone;
}

}  // namespace rlock::cli
