// SPDX-License-Identifier: MIT
// rlock release: releases acquired locks.
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/each_lock.h"
#include "cli/server.h"
#include "lock/history.h"
#include "lock/servers.h"
#include "lock/successes.h"

namespace rlock::cli {
namespace {

// The entry for the history, with what the server knows about the hold.
lock::HistoryNote note_of(lock::Servers& servers, const lock::LockName& name, const lock::OwnerId& owner,
                          milliseconds exchange) {
  const auto status = servers->inspect(name, Until{}.at_most(exchange));
  lock::PastHold past{.name = name, .owner = owner.text()};
  if (status) past = past_of(*status, owner);
  past.end = "released";
  lock::HistoryNote note = lock::note_of(past);
  note.only_if_held = true;  // a second release is no loss
  return note;
}

Result<void> report(const std::string& name, const lock::Released& released) {
  switch (released.outcome) {
    case lock::ReleaseOutcome::kept:
    case lock::ReleaseOutcome::released: break;
    case lock::ReleaseOutcome::free:
      return fail(Error::Code::wrong_kind, "not held: its lease has expired, or it was already released");
    case lock::ReleaseOutcome::other_kind:
      return fail(Error::Code::wrong_kind, "not released: its name is in use for " + released.instead.text());
    case lock::ReleaseOutcome::other_owner:
      return fail(Error::Code::wrong_kind, "not released: another owner holds it");
  }
  if (!released.fault.empty()) {
    log::warning(name + ": released, but waiters could not be told: " + escaped(released.fault, 200));
  }
  if (!released.unwritten.empty()) {
    log::warning(name + ": released, but the history could not be written: " + escaped(released.unwritten, 200));
  }
  log::debug(name + ": released");
  return {};
}

// kNothing: one of the locks has no such success.
Result<int> forget(lock::Servers& servers, ReleaseOptions& options) {
  int status = kDone;
  for (const lock::LockName& name : options.names) {
    const std::string key = name.display() + ": " + escaped(options.forget, 100);
    const bool known = RLOCK_TRY(lock::forget_success(servers, name, options.forget, options.timeout));
    if (known) {
      log::debug(key + ": forgotten; the next job runs again");
    } else {
      log::error(key + ": no success is remembered");
      status = kNothing;
    }
  }
  return status;
}

}  // namespace

Result<int> execute(ReleaseOptions& options) {
  lock::Servers servers = RLOCK_TRY(client_for(options));
  if (options.forgets) return forget(servers, options);
  const lock::OwnerId& owner = *options.owner;
  const auto exchange = [&] { return Until{}.at_most(options.timeout); };
  std::vector<lock::LockName> over;  // locks of which this owner has no hold left
  auto status = for_each_lock(options, [&](const lock::LockName& name) -> Result<void> {
    std::optional<lock::HistoryNote> note;
    if (options.history) note = note_of(servers, name, owner, options.timeout);
    const auto released = RLOCK_TRY(with_any_kind(name, [&](const lock::Lock& lock) {
      return servers->release(lock::ReleaseRequest{lock, owner, owner.first_hold(), {}, note ? &*note : nullptr},
                              exchange());
    }));
    if (released.outcome == lock::ReleaseOutcome::released && released.holds_left == 0) over.push_back(name);
    return report(name.display(), released);
  });
  // Tell a keeper of --for-pid now, or it would only notice at its next renewal. Tell it last, because it then releases
  // all of its locks.
  for (const lock::LockName& name : over) {
    const auto told = servers->ask_to_stop(name, owner, "rlock release", exchange());
    if (!told) log::debug(name.display() + ": " + told.error().message);
  }
  return status;
}

}  // namespace rlock::cli
