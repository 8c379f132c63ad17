// SPDX-License-Identifier: MIT
// The replies of the scripts of lua/, which stand at the head of each, as values. Everything in them is untrusted.
//
// Errors of all: protocol, where a reply has not the shape that the script promises.
#pragma once

#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "lock/answers.h"
#include "redis/reply.h"

namespace rlock::lock {

// None: ask again at once. `sent`: when the first of the requests was sent. Errors: also wrong_kind, where the key of
// the fencing token holds none.
Result<std::optional<Acquired>> read_acquire(const redis::Reply& reply, const AcquireRequest& request, TimePoint sent);

struct RenewReply : Renewed {  // never other_kind: inspect tells that from other_owner
  bool untidy = false;         // a dead waiter stands in the queue: a release by nobody takes it out
};
Result<RenewReply> read_renewal(const redis::Reply& reply);

// Of release and force_unlock.
Result<Released> read_release(const redis::Reply& reply);

// False: the owner does not hold the lock.
Result<bool> read_raise(const redis::Reply& reply, const Lock& lock);

// State::other_kind: it is no lock of the layout of `lock`.
Result<Status> read_inspection(const redis::Reply& reply, const Lock& lock);

}  // namespace rlock::lock
