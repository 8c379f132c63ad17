// SPDX-License-Identifier: MIT
// Reads the replies of the scripts of lua/, which the head of each describes. Everything in them is untrusted.
//
// Errors of all: protocol if a reply does not have the shape that the script promises.
#pragma once

#include <string_view>

#include "redis/reply.h"
#include "verbs/answers.h"

namespace rlock::lock {

// None: ask again at once. `sent`: when the first of the requests was sent. Errors: also wrong_kind if the key of the
// fencing token contains something else.
Result<std::optional<Acquired>> read_acquire(const redis::Reply& reply, const AcquireRequest& request, TimePoint sent);

struct RenewReply : Renewed {  // never other_kind: inspect tells that from other_owner
  bool untidy = false;         // a dead waiter is in the queue; any release removes it
};
Result<RenewReply> read_renewal(const redis::Reply& reply);

// Of release and force_unlock.
Result<Released> read_release(const redis::Reply& reply);

// A record as lua/part/once.lua describes it. None: it is malformed.
std::optional<PastSuccess> read_success(const std::string& key, std::string_view record);

// False: the owner does not hold the lock.
Result<bool> read_raise(const redis::Reply& reply, const Lock& lock);

// State::other_kind: it is not a lock of the layout of `lock`.
Result<Status> read_inspection(const redis::Reply& reply, const Lock& lock);

}  // namespace rlock::lock
