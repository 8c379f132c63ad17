// SPDX-License-Identifier: MIT
// Waiting for a lock that somebody else holds.
#pragma once

#include <functional>
#include <optional>

#include "lock/verbs.h"

namespace rlock::lock {

struct Patience {
  std::optional<milliseconds> limit;  // how long to wait; 0: not at all; none: without limit
  milliseconds exchange{};            // for each exchange with the server
  int interrupt = -1;                 // readable: stop waiting
};

// Takes the lock, and waits for it where it is held. `on_held` is called each time it was found held, with the
// client free for use; it shall be quick.
//
// A waiter listens on the lock's channel, tries again once that is confirmed, and then whenever a message
// comes, the lease of the holder ends, or five seconds are over: publishing is not reliable, and a lease that
// runs out publishes nothing.
// Results: granted, other_kind; held when the limit is over. Errors: those of acquire. A server that is lost
// while waiting is tried again for as long as one lease; at the first attempt its loss is reported at once.
Result<Acquired> acquire_or_wait(redis::Client& client, AcquireRequest request, const Patience& patience,
                                 const std::function<void(const Acquired&)>& on_held);

}  // namespace rlock::lock
