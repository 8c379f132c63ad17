// SPDX-License-Identifier: MIT
#include "lock/deadlock_watch.h"

#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "lock/listing.h"
#include "verbs/by_scripts.h"

namespace rlock::lock {
namespace {

constexpr milliseconds kFirst = 1s, kNext = 5s, kAgain = 1s;
constexpr milliseconds kLongest = 1s;  // for one search, because the waiter hears nothing meanwhile

}  // namespace

LookAt looking_with(Verbs& verbs, const Until& until) {
  return [&verbs, until](const LockName& name) -> std::optional<Status> {
    if (until.over()) return {};
    auto found = verbs.inspect(name, until);
    return found ? std::optional(*std::move(found)) : std::nullopt;
  };
}

Result<std::vector<Deadlock>> find_deadlocks(redis::Client& client, milliseconds exchange, const Until& until) {
  ByScripts verbs(client);
  std::vector<Status> locks;
  for (const LockName& name : RLOCK_TRY(names_with(client, {&LockName::kQueue, 1}, sizeof(Status), exchange, until))) {
    if (auto found = verbs.inspect(name, until.at_most(exchange), {})) locks.push_back(*std::move(found));
  }
  add_held_by_waiters(locks, looking_with(verbs, until));
  return deadlocks_in(locks);
}

DeadlockWatch::DeadlockWatch(Verbs& verbs, const LockName& name, const OwnerId& id, const AncestorLocks& within,
                             bool stays)
    : verbs_(verbs),
      name_(name.display()),
      id_(id.text()),
      within_(within),
      stays_(stays),
      due_(BootClock::now() + kFirst) {}

TimePoint DeadlockWatch::look_if_due(const Until& until) {
  if (BootClock::now() < due_) return due_;
  const auto found = deadlock_of(id_, within_, looking_with(verbs_, until.at_most(kLongest)));
  if (!found) log::debug(name_ + ": no deadlock");
  const std::string essence = found ? found->essence : "";
  const bool again = essence == std::exchange(seen_, essence);
  due_ = BootClock::now() + (found && !again ? kAgain : kNext);
  if (found && again) judge(*found);
  return due_;
}

void DeadlockWatch::judge(const Deadlock& deadlock) {
  const Deadlock::Member* youngest = deadlock.youngest();
  const std::string text = "deadlock: " + deadlock.text(id_);
  if (youngest && youngest->id == id_ && !stays_) {
    verdict_ = text;
    return;
  }
  if (std::exchange(told_, seen_) == seen_) return;
  log::warning(name_ + ": " + text +
               (youngest ? "; pid " + std::to_string(youngest->who.pid) + " on " + escaped(youngest->who.host, 80) +
                               " gives up, because it is the youngest"
                         : "; none of them gives up"));
}

}  // namespace rlock::lock
