// SPDX-License-Identifier: MIT
// rlock release: give an acquired lock back.
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/server.h"
#include "lock/verbs.h"

namespace rlock::cli {

Result<int> execute(const ReleaseOptions& options) {
  redis::Client client = RLOCK_TRY(client_for(options.common));
  const auto released = RLOCK_TRY(lock::release(client, options.name, options.owner, options.owner.first_hold(),
                                                Until{}.at_most(options.common.timeout)));
  const std::string name = options.name.display();
  if (released.outcome == lock::ReleaseOutcome::released) {
    if (!released.fault.empty()) {
      log::warning(name + ": released, but waiters could not be told: " + escaped(released.fault, 200));
    }
    return kDone;
  }
  // The first request did it, and its reply was lost.
  if (released.after_lost_reply) return kDone;
  return fail(Error::Code::wrong_kind, name + (released.outcome == lock::ReleaseOutcome::free
                                                   ? ": not held: its lease ran out, or it was released before"
                                                   : ": not released: another owner holds it"));
}

}  // namespace rlock::cli
