// SPDX-License-Identifier: MIT
// Taking locks, and waiting for those that others hold.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lock/servers.h"
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

struct Taken {
  std::vector<Hold> holds;  // of all requests, in their order; empty if one was not granted
  std::size_t refused = 0;  // the index of that one
  Acquired refusal;         // and why
};

// Takes all of the locks, or none.
//
// One server: takes them one after another, and waits where one is held, as acquire_or_wait, keeping those before it
// renewed, every WaitPolicy::renew_every. All share one time limit. If one is not granted, or the call ends in an
// error, those that were are released. Programs that take locks in one order never wait in a circle with others who do
// (Havender 1968, "Avoiding deadlock in multitasking systems"): the requests are to be in the order of their names. If
// one is lost while another is waited for, all are given back, and it begins again; if somebody asks for it (see
// ask_to_stop), it is over.
//
// A quorum: asks for all names, one after another. If a majority does not grant one of them within the validity of the
// first, all are given back at once, on all servers, also on those that have not answered; a random pause follows, and
// another attempt under another owner id. A waiter stands in no queue, and holds nothing while it waits: it hears of
// releases on each server. Errors: also config, where the servers are not independent of each other.
//
// `on_held` is called each time a lock was found held, with the index of the request. Errors: those of acquire_or_wait.
// Owner ids, and the ids of holds beside an ancestor's, are made here. REQUIRES: sorted by name, no name twice, one
// lease for all.
using OnHeldOf = std::function<void(std::size_t, const Acquired&)>;
Result<Taken> acquire_all(Servers& servers, const std::vector<AcquireRequest>& requests, const WaitPolicy& policy,
                          const OnHeldOf& on_held);
Result<Taken> acquire_of_quorum(Quorum& quorum, std::vector<redis::Address> addresses,
                                const std::vector<AcquireRequest>& requests, const WaitPolicy& policy,
                                const OnHeldOf& on_held);

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
Result<Acquired> acquire_or_wait(Verbs& verbs, redis::Client& client, AcquireRequest request, const WaitPolicy& policy,
                                 const OnHeld& on_held);

}  // namespace rlock::lock
