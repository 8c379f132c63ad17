// SPDX-License-Identifier: MIT
// Waiting for a lock that somebody else holds.
#pragma once

#include <functional>

#include "lock/verbs.h"
#include "lock/wait_policy.h"

namespace rlock::lock {

// Called each time a lock was found held, with the client free for use; it shall be quick. Its error ends the wait.
using OnHeld = std::function<Result<void>(const Acquired&)>;

// Takes the lock, and waits for it where it is held.
//
// A waiter listens on a channel of its own, and stands in the queue of the lock from then on (lua/part/queue.lua): a
// release gives the lock to the first one there. The first one listens on the lock's channel as well, for releases by
// other programs. Publishing is not reliable, and a lease that runs out publishes nothing: the first one
// looks when the lease of the holder ends, but every five seconds at least, as does the second, because the first may
// have died; the others look every ten to thirty-five seconds, which also says that they live, or some seconds after
// the lease of the holder, as it was when they looked last, should have ended. A user without the
// right to listen does not stand in the queue, and looks every five seconds.
//
// A program that has taken a string by SET NX publishes nothing at all. While it holds the lock, the first one asks for
// the key's TTL after 5 ms, then after twice as long each time, up to 200 ms, and never later than at its end. A string
// without a time is not waited for without a limit (Outcome::immortal).
//
// Results: those of acquire; held when the limit is over. Errors: those of acquire and of `on_held`. A server
// that is lost while waiting is tried again for as long as one lease; at the first attempt its loss is reported at
// once. Whatever comes of it but a grant, nothing of this waiter stays, as far as the server can be reached.
Result<Acquired> acquire_or_wait(redis::Client& client, AcquireRequest request, const WaitPolicy& policy,
                                 const OnHeld& on_held);

}  // namespace rlock::lock
