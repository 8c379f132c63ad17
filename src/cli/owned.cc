// SPDX-License-Identifier: MIT
// rlock renew and rlock release: several locks of one owner, of an unknown kind.
#include "base/log.h"
#include "cli/commands.h"
#include "cli/server.h"
#include "lock/successes.h"

namespace rlock::cli {
namespace {

// Calls a verb for a plain lock and, if the reply says that it is of another kind, again for that kind. A string that
// is not this owner's lock does not count as one. An id of another form than rlock's is at most that of a permit:
// another program's string may have it as its value, and any hash as a field.
template <class Verb>
auto with_any_kind(const lock::LockName& name, const lock::OwnerId& owner, Verb verb) {
  const bool may_be_ours = owner.begins_like_uuid();
  auto result = verb(lock::Lock{name, may_be_ours ? lock::Layout::plain : lock::Layout::semaphore});
  using Outcome = decltype(result->outcome);
  const auto layout = result ? result->instead.layout() : std::nullopt;
  if (!may_be_ours) {
    if (layout) result->outcome = Outcome::other_owner;
    return result;
  }
  if (result && result->instead.may_be_string_lock()) {
    auto string = verb(lock::Lock{name, lock::Layout::string});
    const bool ours = !string || (string->outcome != Outcome::other_owner && string->outcome != Outcome::other_kind);
    return ours ? string : result;
  }
  return layout ? verb(lock::Lock{name, *layout}) : result;
}

// Calls `action` for each name, even after errors. Returns the last error, and reports the others.
template <class Action>
Result<int> for_each_lock(const NamingOptions& options, Action action) {
  Result<int> all = kDone;
  for (const lock::LockName& name : options.names) {
    Result<void> done = action(name);
    if (done) continue;
    if (!all) log::error(with_advice(all.error(), options).message);
    all = std::unexpected(std::move(done).error().in(name.display()));
  }
  return all;
}

// `verb`: "released", for messages. An error if this owner does not hold the lock.
template <class Reply>
Result<void> expect_ours(const Reply& reply, const std::string& verb) {
  using Outcome = decltype(reply.outcome);
  const auto refuse = [](const std::string& why) { return fail(Error::Code::wrong_kind, why); };
  if (reply.outcome == Outcome::other_kind)
    return refuse("not " + verb + ": its name is in use for " + reply.instead.text());
  if (reply.outcome != Outcome::free && reply.outcome != Outcome::other_owner) return {};
  if (!reply.by.empty()) return refuse("not held: " + reply.by + " has taken it away");
  if (reply.outcome == Outcome::free)
    return refuse("not held: its lease has expired, or it was released or taken away");
  return refuse("not " + verb + ": another owner holds it");
}

// The entry for the history, with what the server knows about the hold.
lock::HistoryNote note_of(const lock::LockName& name, const Result<lock::Status>& status, const lock::OwnerId& owner) {
  lock::PastHold past{.name = name, .owner = owner.text()};
  if (status) past = past_of(*status, owner);
  past.end = "released";
  lock::HistoryNote note = lock::note_of(past);
  note.only_if_held = true;  // a second release is no loss
  return note;
}

// A command of `rlock run` would go on, beside the next one. Errors: wrong_kind.
Result<void> expect_no_command(const Result<lock::Status>& status, const lock::OwnerId& owner) {
  if (!status) return {};  // the release says why
  const lock::HolderView* hold = status->holder_of(owner.text());
  if (!hold || !hold->is_of_run()) return {};
  // The acquire's, beside that of run --owner. Other additional holds are those of nested runs.
  if (hold->who.pid == 0 && hold->holds > 1) return {};
  return fail(Error::Code::wrong_kind, "not released: rlock run has it, " + hold->who.process() +
                                           ", and releases it when its command has ended; to stop that, use rlock "
                                           "force-unlock");
}

// kNothing: there is no such success.
Result<int> forget(lock::Servers& servers, const ReleaseOptions& options) {
  const lock::LockName& name = options.names.front();
  const std::string key = name.display() + ": " + escaped(options.forget, 100);
  if (RLOCK_TRY(lock::forget_success(servers, name, options.forget, options.timeout))) {
    log::debug(key + ": forgotten; the next job runs again");
    return kDone;
  }
  log::error(key + ": no success is remembered");
  return kNothing;
}

}  // namespace

Result<int> execute(RenewOptions& options) {
  lock::Servers servers = RLOCK_TRY(client_for(options));
  return for_each_lock(options, [&](const lock::LockName& name) -> Result<void> {
    const auto renewed = RLOCK_TRY(with_any_kind(name, *options.owner, [&](const lock::Lock& lock) {
      return servers->renew(lock, *options.owner, options.lease, Until{}.at_most(options.timeout));
    }));
    RLOCK_TRY(expect_ours(renewed, "renewed"));
    if (renewed.outcome == lock::RenewOutcome::lease_unknown) {
      return fail(Error::Code::usage, "it was not granted by rlock, so give --lease DUR");
    }
    log::debug(name.display() + ": renewed, with " + rough_duration(renewed.found) + " left of the lease");
    return {};
  });
}

Result<int> execute(ReleaseOptions& options) {
  lock::Servers servers = RLOCK_TRY(client_for(options));
  if (options.forgets) return forget(servers, options);
  const lock::OwnerId& owner = *options.owner;
  const auto exchange = [&] { return Until{}.at_most(options.timeout); };
  std::vector<lock::LockName> over;  // locks of which this owner has no hold left
  auto status = for_each_lock(options, [&](const lock::LockName& name) -> Result<void> {
    const auto seen = servers->inspect(name, exchange(), {.owner = &owner});
    RLOCK_TRY(expect_no_command(seen, owner));
    std::optional<lock::HistoryNote> note;
    if (options.history) note = note_of(name, seen, owner);
    const auto released = RLOCK_TRY(with_any_kind(name, owner, [&](const lock::Lock& lock) {
      return servers->release(lock::ReleaseRequest{lock, owner, owner.first_hold(), {}, note ? &*note : nullptr},
                              exchange());
    }));
    if (released.outcome == lock::ReleaseOutcome::released && released.holds_left == 0) over.push_back(name);
    RLOCK_TRY(expect_ours(released, "released"));
    warn_of_trouble(name.display() + ": released, but ", released);
    log::debug(name.display() + ": released");
    return {};
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
