// SPDX-License-Identifier: MIT
// How a waiter waits.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lock/answers.h"
#include "redis/subscriber.h"

namespace rlock::lock {

// Called, maybe several times, when this waiter has come to the front, so that its turn is the next. `expected` is the
// hold that it will have, but for token and time. It may fork: then the child calls `disconnect`, which closes its copy
// of the connection that listens. Else it would seem to others that a waiter listens who is dead.
using AtFront = std::function<void(const Hold& expected, const std::function<void()>& disconnect)>;

struct WaitPolicy {
  // How long to wait, also for a server that is away; 0: not at all; none: without limit, but for a server that has
  // answered only, and as long as a lease.
  std::optional<milliseconds> limit;
  milliseconds exchange{};           // for each exchange with the server
  int interrupt = -1;                // readable: stop waiting
  QueueRequest queueing;             // how to stand in the queue
  milliseconds longest_look = 1min;  // between two looks at the lock, at most
  milliseconds renew_every{};        // of locks that are held while others are waited for
  int replicas = 0;                  // a grant counts only once so many replicas of the server have it
  bool on_disk = false;              // and once it is on the disks of the server and of these
  AtFront at_front;                  // none: nobody wants to know
  // Called between two looks at the lock, once it was found held; shall be quick. Returns when to call it again.
  std::function<TimePoint()> meanwhile;
  // Channels that are listened to while waiting, and what is said there. Its error ends the wait.
  std::vector<std::string> other_channels;
  std::function<Result<void>(const redis::Message&)> on_message;
};

}  // namespace rlock::lock
