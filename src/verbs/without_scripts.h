// SPDX-License-Identifier: MIT
// The string lock (lua/layout/string.lua) on a server that refuses scripts, kept with single commands that compare: SET
// key value NX takes it, and SET key value IFEQ value renews and releases it (Redis 8.4, Valkey 8.1).
//
// There is no queue, no fencing token (it is "0"), no description of the holder, no re-entry and no history, because
// those need more than one key. A waiter asks again and again. The functions are as those of Verbs. Errors of all:
// those of redis::Client; the refusal of scripts if the server does not know these commands either.
#pragma once

#include "redis/client.h"
#include "verbs/script.h"

namespace rlock::lock {

class WithoutScripts {
 public:
  // `refused`: the server's refusal to run scripts.
  WithoutScripts(redis::Client& client, Error refused) : client_(client), refused_(std::move(refused)) {}

  // Whether `refused` is such a refusal, and `lock` does not need scripts.
  static bool can_keep(const Lock& lock, const Error& refused);

  // Errors: also config if the request needs scripts.
  Result<Acquired> acquire(const AcquireRequest& request, const Until& until);
  // The length of the lease as granted (`lease` 0) is unknown (lease_unknown). A longer remaining lease is kept.
  Result<Renewed> renew(const Lock& lock, const OwnerId& owner, milliseconds lease, Attempts attempts,
                        const Until& until);
  // Lets the string expire after a millisecond, or after `keep`; does not write the note. The outcome is released or
  // kept if the lock was the owner's when this was called, even if a reply is lost. Errors: also config if scripts have
  // counted more than one hold of this owner.
  Result<Released> release(const ReleaseRequest& request, const Until& until);
  // Knows only the owner and the TTL.
  Result<Status> inspect(const LockName& name, const Until& until);

 private:
  Result<bool> set_time(const LockName& name, const std::string& owner, milliseconds time, Attempts attempts,
                        const Until& until);
  Result<void> expect_compare(const LockName& name, const Until& until);

  redis::Client& client_;
  Error refused_;
};

}  // namespace rlock::lock
