// SPDX-License-Identifier: MIT
// rlock release: give acquired locks back.
#include "base/log.h"
#include "base/text.h"
#include "cli/any_kind.h"
#include "cli/commands.h"
#include "cli/each_name.h"
#include "cli/server.h"
#include "lock/history.h"
#include "lock/quorum.h"

namespace rlock::cli {

namespace {

// A keeper of --for-pid has nothing to do any more. Without this it would learn that at its next renewal.
void tell_keeper(lock::Servers& client, const ReleaseOptions& options, const lock::LockName& name) {
  const auto told = lock::ask_to_stop(client, name, *options.owner, "rlock release", Until{}.at_most(options.timeout));
  if (!told) log::debug(name.display() + ": " + told.error().message);
}

// For the history, what the server knows of the hold.
lock::HistoryNote note_of(lock::Servers& client, const ReleaseOptions& options, const lock::LockName& name) {
  const auto status = lock::inspect(client, name, Until{}.at_most(options.timeout));
  lock::PastHold past{.name = name, .owner = options.owner->text()};
  if (status) past = past_of(*status, *options.owner);
  past.end = "released";
  lock::HistoryNote note = lock::note_of(past);
  note.only_if_held = true;  // a second release is no loss
  return note;
}

// Adds the name to `over` if nothing of this owner's is left there.
Result<void> release(lock::Servers& client, const ReleaseOptions& options, const lock::LockName& lock_name,
                     std::vector<lock::LockName>& over) {
  const lock::HistoryNote note = options.history ? note_of(client, options, lock_name) : lock::HistoryNote{};
  const auto released = with_any_kind(lock_name, [&](const lock::Lock& lock) {
    return lock::release(client, lock, *options.owner, options.owner->first_hold(), Until{}.at_most(options.timeout),
                         {}, options.history ? &note : nullptr);
  });
  const std::string name = lock_name.display();
  if (!released) return std::unexpected(Error(released.error()).in(name));
  if (released->outcome == lock::ReleaseOutcome::released) {
    if (released->holds_left == 0) over.push_back(lock_name);
    if (!released->fault.empty()) {
      log::warning(name + ": released, but waiters could not be told: " + escaped(released->fault, 200));
    }
    if (!released->unwritten.empty()) {
      log::warning(name + ": released, but the history could not be written: " + escaped(released->unwritten, 200));
    }
    log::debug(name + ": released");
    return {};
  }
  switch (released->outcome) {
    case lock::ReleaseOutcome::free:
      return fail(Error::Code::wrong_kind, name + ": not held: its lease ran out, or it was released before");
    case lock::ReleaseOutcome::other_kind:
      return fail(Error::Code::wrong_kind, name + ": not released: its name is in use for " + released->instead.text());
    default: return fail(Error::Code::wrong_kind, name + ": not released: another owner holds it");
  }
}

}  // namespace

Result<int> execute(const ReleaseOptions& options) {
  lock::Servers client = RLOCK_TRY(client_for(options));
  std::vector<lock::LockName> over;
  auto released =
      for_each_name(options.names, [&](const lock::LockName& name) { return release(client, options, name, over); });
  // Only now: it gives all of them back when it is told of one.
  for (const lock::LockName& name : over) tell_keeper(client, options, name);
  return released;
}

}  // namespace rlock::cli
