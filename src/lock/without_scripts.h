// SPDX-License-Identifier: MIT
// The lock that is a string (lua/layout/string.lua) on a server that lets nobody run scripts, by single commands that
// compare: SET key value NX takes it, and SET key value IFEQ value renews and releases it (Redis 8.4, Valkey 8.1).
//
// There is no queue, no fencing token (it is "0"), no description of a holder, no re-entry and no history: those are
// more than one key. A waiter asks again and again. Errors of all: those of redis::Client; the refusal of scripts where
// the server has no such command either.
#pragma once

#include <string>

#include "lock/script.h"
#include "lock/verbs.h"
#include "redis/client.h"

namespace rlock::lock {

class WithoutScripts final : public Verbs {
 public:
  // `refused`: says that scripts may not be run.
  WithoutScripts(redis::Client& client, Error refused) : client_(client), refused_(std::move(refused)) {}

  // `refused` says that, and `lock` is one that needs none.
  static bool can_keep(const Lock& lock, const Error& refused);

  // Errors: also config, where the request wants what only a script can give.
  using Verbs::acquire, Verbs::renew, Verbs::release;
  Result<Acquired> acquire(const AcquireRequest& request, TimePoint sent, const Until& until) override;
  // `lease` 0, as long as it was granted, is not known here (lease_unknown). A longer one that is there stays.
  Result<Renewed> renew(const Lock& lock, const OwnerId& owner, milliseconds lease, const Until& until) override {
    return renew_one(lock, owner, lease, Attempts::until_deadline, until);
  }
  Result<Renewed> renew_one(const Lock& lock, const OwnerId& owner, milliseconds lease, Attempts attempts,
                            const Until& until);
  // The string runs out within a millisecond, or within `keep`; the note is not written. The outcome is released or
  // kept if the lock was the owner's when this was called, whichever reply is lost. Errors: also config, where the
  // owner holds it more than once, as scripts have counted.
  Result<Released> release(const ReleaseRequest& request, const Until& until) override;
  Result<Released> force_unlock(const Lock& lock, const OwnerId& owner, const Until& until,
                                const HistoryNote* note) override {
    return release({lock, owner, "", {}, note}, until);
  }
  Result<long long> ask_to_stop(const LockName& name, const OwnerId& owner, const std::string& by,
                                const Until& until) override;
  // The one that holds the lock, and for how long; nobody does where `holders` is empty.
  Result<Status> inspect(const LockName& name, const Until& until, Look look) override;

 private:
  Result<AllRenewed> renew_all(std::span<const Hold> holds, milliseconds lease, TimePoint sent,
                               const Until& until) override;
  Result<bool> set_time(const LockName& name, const std::string& owner, milliseconds time, Attempts attempts,
                        const Until& until);
  Result<void> expect_simple(const AcquireRequest& request) const;
  Result<void> expect_compare(const LockName& name, const Until& until);

  redis::Client& client_;
  Error refused_;
};

}  // namespace rlock::lock
