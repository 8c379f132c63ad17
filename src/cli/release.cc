// SPDX-License-Identifier: MIT
// rlock release: give an acquired lock back.
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/server.h"
#include "lock/verbs.h"

namespace rlock::cli {

namespace {

// A keeper of --for-pid has nothing to do any more. Without this it would learn that at its next renewal.
void tell_keeper(redis::Client& client, const ReleaseOptions& options) {
  const auto told =
      lock::ask_to_stop(client, options.name, options.owner, "rlock release", Until{}.at_most(options.common.timeout));
  if (!told) log::debug(options.name.display() + ": " + told.error().message);
}

}  // namespace

Result<int> execute(const ReleaseOptions& options) {
  redis::Client client = RLOCK_TRY(client_for(options.common));
  const auto released = lock::release(client, options.name, options.owner, options.owner.first_hold(),
                                      Until{}.at_most(options.common.timeout));
  const std::string name = options.name.display();
  if (!released) return std::unexpected(Error(released.error()).in(name));
  if (released->outcome == lock::ReleaseOutcome::released) {
    if (released->holds_left == 0) tell_keeper(client, options);
    if (!released->fault.empty()) {
      log::warning(name + ": released, but waiters could not be told: " + escaped(released->fault, 200));
    }
    return kDone;
  }
  // The first request did it, and its reply was lost.
  if (released->after_lost_reply) return kDone;
  switch (released->outcome) {
    case lock::ReleaseOutcome::free:
      return fail(Error::Code::wrong_kind, name + ": not held: its lease ran out, or it was released before");
    case lock::ReleaseOutcome::other_kind:
      return fail(Error::Code::wrong_kind, name + ": not released: it is in use as another kind of lock");
    default: return fail(Error::Code::wrong_kind, name + ": not released: another owner holds it");
  }
}

}  // namespace rlock::cli
