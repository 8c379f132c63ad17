// SPDX-License-Identifier: MIT
// Taking locks, and waiting for locks that others hold.
#pragma once

#include "lock/servers.h"
#include "redis/subscriber.h"

namespace rlock::lock {

// Called, maybe several times, when it is this waiter's turn next. `expected` is the hold that it will have, without
// token and time. The function may fork: the child then calls `disconnect`, which closes its copy of the connection
// that listens. Otherwise a dead waiter would seem to listen.
using AtFront = std::function<void(const Hold& expected, const std::function<void()>& disconnect)>;

struct WaitPolicy {
  // How long to wait, also for an unreachable server; 0: not at all; none: without limit, but for a server only if it
  // has answered before, and only as long as a lease.
  std::optional<milliseconds> limit;
  milliseconds exchange{};           // for each exchange with the server
  int interrupt = -1;                // readable: stop waiting
  QueueRequest queueing;             // how to wait in the queue
  milliseconds longest_look = 1min;  // the longest time between two looks at the lock
  milliseconds renew_every{};        // for locks that are held while waiting for the others
  int replicas = 0;                  // a grant counts only once this many replicas of the server have it
  AtFront at_front;                  // may be empty
  // Called between two looks at a held lock; must be quick. Returns when to call it again. Its error ends the wait.
  std::function<Result<TimePoint>()> meanwhile;
  // More channels to listen to while waiting, and what to do with their messages. An error ends the wait.
  std::vector<std::string> other_channels;
  std::function<Result<void>(const redis::Message&)> on_message;

  // From now on: for the next exchange, and for the whole wait.
  Until next() const { return Until{TimePoint::max(), interrupt}.at_most(exchange); }
  // For the next exchange of a wait that ends then. All that goes on after its limit has the time of one exchange,
  // together.
  Until next(const Until& end) const { return limit ? next().at_most(end.deadline + exchange) : next(); }
  Until end() const {
    const Until until{TimePoint::max(), interrupt};
    return limit ? until.at_most(*limit) : until;
  }
};

// For messages: "a, b".
std::string names_of(const std::vector<AcquireRequest>& requests);

struct Taken {
  std::vector<Hold> holds;  // of all requests, in their order; empty if one was not granted
  std::size_t refused = 0;  // the index of that one
  Acquired refusal;         // and why
};

// Takes all of the locks, or none.
//
// One server: takes them one after another, waits for those that are held (see acquire_or_wait), and renews what it has
// every WaitPolicy::renew_every. They share one time limit. If one is not granted, or the call ends with an error, the
// others are released. If one is lost while waiting for another, all are given back, and it starts again; if another
// process asks for one (see ask_to_stop), it is over. Programs that take locks in the same order never wait in a circle
// (Havender 1968, "Avoiding deadlock in multitasking systems"), so the requests must be in the order of their names.
//
// A quorum: asks for all names, one after another. If a majority does not grant one of them within the validity of the
// first, all are given back on all servers, even on those that have not answered. Another attempt under a new owner id
// follows after a random pause. A waiter is in no queue and holds nothing while it waits; each server tells it of
// releases. Errors: also config if the servers are not independent.
//
// `on_held` is called each time a lock was found held, with the index of the request. If it returns why the wait can
// never end, other than "", it is over (Endless). Errors: those of acquire_or_wait.
// This function chooses the owner ids, and the ids of holds beside an ancestor's. REQUIRES: sorted by name, no name
// twice, one lease for all.
using OnHeldOf = std::function<std::string(std::size_t, const Held&)>;
Result<Taken> acquire_all(Servers& servers, const std::vector<AcquireRequest>& requests, const WaitPolicy& policy,
                          const OnHeldOf& on_held);

// Called each time a lock was found held, while the client is free for use; must be quick. Its error ends the wait.
using OnHeld = std::function<Result<void>(const Held&)>;

// Takes the lock, and waits if it is held.
//
// docs/architecture.md, The queue, says how a waiter hears of a release, and when it looks by itself. A user without
// the right to listen cannot join the queue, and looks every five seconds.
//
// A program that has taken a string with SET NX publishes nothing. While it holds the lock, the first waiter asks for
// the key's TTL after 5 ms, and then after twice as long each time, up to 200 ms, but no later than its end. A string
// without a TTL is not waited for without a limit (Immortal).
//
// Results: those of acquire; held once the limit is over. Errors: those of acquire and of `on_held`. If the server is
// lost during the wait, it is tried again for the length of a lease; if it is lost at the first attempt, that is
// reported at once. Unless the lock is granted, nothing of this waiter stays on a server that can be reached.
Result<Acquired> acquire_or_wait(Verbs& verbs, redis::Client& client, AcquireRequest request, const WaitPolicy& policy,
                                 const OnHeld& on_held);

}  // namespace rlock::lock
