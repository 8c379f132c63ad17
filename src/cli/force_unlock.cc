// SPDX-License-Identifier: MIT
// rlock force-unlock: take a lock away from its holder, after showing who that is.
#include <utility>

#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/confirm.h"
#include "cli/output.h"
#include "cli/server.h"
#include "cli/take.h"
#include "lock/verbs.h"

namespace rlock::cli {
namespace {

std::unexpected<Error> not_ours(const std::string& message) { return fail(Error::Code::wrong_kind, message); }

constexpr milliseconds kAskAgain = 200ms;

// Asks the holder to stop until it has released the lock, or has died and its lease has run out.
// False: it holds the lock still when the wait is over.
Result<bool> ask_and_wait(redis::Client& client, const ForceUnlockOptions& options, const lock::OwnerId& owner) {
  const lock::Holder self = describe_self("", "");
  const std::string by = self.user + "@" + self.host + " (rlock force-unlock)";
  bool heard = false;
  for (const Until end = Until{}.at_most(options.wait); !end.over(); wait_for(-1, 0, end.at_most(kAskAgain))) {
    const Until exchange = Until{}.at_most(options.common.timeout);
    const bool hears = RLOCK_TRY(lock::ask_to_stop(client, options.name, owner, by, exchange)) > 0;
    if (hears && !std::exchange(heard, true)) {
      RLOCK_TRY(print(options.name.display() + ": the holder has been asked to stop; waiting for it\n"));
    }
    const auto status = RLOCK_TRY(lock::inspect(client, options.name, exchange));
    if (status.state != lock::Status::State::held || status.owner != owner.text()) return true;
  }
  return false;
}

Result<int> take_away(redis::Client& client, const ForceUnlockOptions& options, const lock::OwnerId& owner) {
  const std::string name = options.name.display();
  const auto released =
      RLOCK_TRY(lock::force_unlock(client, options.name, owner, Until{}.at_most(options.common.timeout)));
  if (!released.fault.empty()) log::warning(name + ": waiters could not be told: " + escaped(released.fault, 200));
  switch (released.outcome) {
    case lock::ReleaseOutcome::other_owner: return not_ours(name + ": left alone: it has got another owner meanwhile");
    case lock::ReleaseOutcome::other_kind: return not_ours(name + ": left alone: it is another kind of lock by now");
    case lock::ReleaseOutcome::free: RLOCK_TRY(print(name + ": free by itself meanwhile\n")); break;
    case lock::ReleaseOutcome::kept:
    case lock::ReleaseOutcome::released: RLOCK_TRY(print(name + ": free\n")); break;
  }
  return kDone;
}

}  // namespace

Result<int> execute(const ForceUnlockOptions& options) {
  redis::Client client = RLOCK_TRY(client_for(options.common));
  const std::string name = options.name.display();

  const auto status = RLOCK_TRY(lock::inspect(client, options.name, Until{}.at_most(options.common.timeout)));
  if (status.state == lock::Status::State::other_kind) {
    return not_ours(name + ": not a lock, but " + status.other_kind + "; left alone");
  }
  if (status.state == lock::Status::State::free) {
    RLOCK_TRY(print(name + ": not held\n"));
    return kDone;
  }
  const auto owner = lock::OwnerId::as_stored(status.owner);
  if (options.owner && *options.owner != owner) return not_ours(name + ": left alone: " + held_by(status));

  // Who does not listen cannot be asked: another program, or a shell between acquire and release.
  const bool ask = status.holder.listens && !options.now;
  RLOCK_TRY(print(status_in_full(status)));
  const std::string question = ask                   ? "Stop this command and free the lock?"
                               : status.holder.ended ? "Free this lock?"
                                                     : "Take this lock away? A command under it may still run.";
  if (!options.yes && !RLOCK_TRY(confirm(question))) {
    RLOCK_TRY(print("left alone\n"));
    return kNotAcquired;
  }
  if (!ask) return take_away(client, options, owner);
  if (RLOCK_TRY(ask_and_wait(client, options, owner))) {
    RLOCK_TRY(print(name + ": released\n"));  // the next one may have it already
    return kDone;
  }
  log::error(name + ": still held after " + format_duration(options.wait) +
             "; --now takes it away at once, while the command under it may still run");
  return kNotAcquired;
}

}  // namespace rlock::cli
