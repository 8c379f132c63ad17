// SPDX-License-Identifier: MIT
// The lock that is a string (lua/layout/string.lua) on a server that lets nobody run scripts, by single commands that
// compare: SET key value NX takes it, and SET key value IFEQ value renews and releases it (Redis 8.4, Valkey 8.1).
//
// There is no queue, no fencing token (it is "0"), no description of a holder, no re-entry and no history: those are
// more than one key. A waiter asks again and again. lock/verbs tries the script first, and comes here when that is
// refused. Errors of all: those of redis::Client; `refused` itself where the server has no such command either.
#pragma once

#include <string>

#include "base/error.h"
#include "lock/answers.h"
#include "lock/replies.h"
#include "lock/script.h"
#include "redis/client.h"

namespace rlock::lock::without_scripts {

// `refused` says that scripts may not be run, and `lock` is one that needs none.
bool can_keep(const Lock& lock, const Error& refused);

// Errors: also config, where the request wants what only a script can give.
Result<Acquired> acquire(redis::Client& client, const AcquireRequest& request, const Error& refused,
                         const Until& until);

// `lease` 0, as long as it was granted, is not known here (lease_unknown). A longer one that is there stays.
Result<wire::RenewReply> renew(redis::Client& client, const Lock& lock, const OwnerId& owner, milliseconds lease,
                                Attempts attempts, const Until& until);

// The string runs out within a millisecond, or within `keep`; `note` is not written. The outcome is released or kept
// if the lock was the owner's when this was called, whichever reply is lost.
// Errors: also config, where the owner holds it more than once, as scripts have counted.
Result<Released> release(redis::Client& client, const Lock& lock, const OwnerId& owner, milliseconds keep,
                         const Until& until, const HistoryNote* note);

Result<Status> inspect(redis::Client& client, const LockName& name, const Until& until);

}  // namespace rlock::lock::without_scripts
