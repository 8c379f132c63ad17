// SPDX-License-Identifier: MIT
// Looks for deadlocks (lock/deadlock.h) on the servers.
#pragma once

#include "lock/deadlock.h"
#include "redis/client.h"
#include "verbs/verbs.h"

namespace rlock::lock {

// For the functions that look at further locks. Leaves out those that cannot be looked at, and after the end of `until`
// all. REQUIRES: `verbs` outlives the result.
LookAt looking_with(Verbs& verbs, const Until& until);

// The deadlocks among all waiters of a server. Looks at every key. Errors: those of names_with.
Result<std::vector<Deadlock>> find_deadlocks(redis::Client& client, milliseconds exchange, const Until& until);

// Looks for a deadlock on behalf of one waiter that holds other locks: a second after it found its lock held, and then
// every few seconds, even if the waiter is far back in the queue and seldom looks at its lock. Only a deadlock that is
// still there a second later counts. Warns of it once, unless this waiter is to give up.
class DeadlockWatch {
 public:
  // `within`: what it holds; `stays`: it does not give up. REQUIRES: `verbs` and `within` outlive this object.
  DeadlockWatch(Verbs& verbs, const LockName& name, const OwnerId& id, const AncestorLocks& within, bool stays);

  // Looks if that is due. Returns when that is due next.
  TimePoint look_if_due(const Until& until);
  // Who waits for whom, for people, if this waiter has to give up.
  const std::optional<std::string>& verdict() const { return verdict_; }

 private:
  void judge(const Deadlock& deadlock);

  Verbs& verbs_;
  std::string name_, id_;
  const AncestorLocks& within_;
  bool stays_;
  TimePoint due_;
  std::string seen_, told_;  // their essence
  std::optional<std::string> verdict_;
};

}  // namespace rlock::lock
