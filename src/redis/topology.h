// SPDX-License-Identifier: MIT
// From an address to the server that keeps the locks now: the server itself, the one that Redis Sentinel names as the
// master (redis.io, "Guidelines for Redis clients"), or the one of a cluster that keeps a slot ("Redis cluster
// specification"). Nobody above knows how many servers an address stands for.
#pragma once

#include <optional>

#include "base/error.h"
#include "base/wait.h"
#include "redis/address.h"
#include "redis/connection.h"

namespace rlock::redis {

// A connection to that server; in a cluster, to the one that keeps `slot`, or to any. Names and Sentinels are asked
// again each time: after a failover another one has taken its place. Errors: those of Connection::open, find_master and
// learn_slots; unavailable where the server that the Sentinels name says that it is a replica, or nobody keeps the
// slot.
Result<Connection> connect(const Address& address, std::optional<int> slot, const Until& until);

// The same for servers that have served this address before: a password, a right or a certificate that is refused now
// is being changed, on either side, and trying again may help. Errors: those of connect(), but unavailable in place of
// denied, untrusted and config.
Result<Connection> connect_again(const Address& address, std::optional<int> slot, const Until& until);

struct Named {
  Host master;
  bool by_most = false;  // more than half of the Sentinels have answered
  long long epoch = 0;   // of the failover by which it became the master
};

// Asks the Sentinels one after the other, those last that did not answer the last time, each for its share of the time
// left and a second at most, until more than half of them have named a master. Of these answers, and of fewer where
// there are no more, the one with the highest configuration epoch counts: it comes from the latest failover that any of
// them has heard of, while a Sentinel behind a partition goes on naming the old master. Errors: unavailable (none that
// knows the master answers, and some may later), untrusted, denied (all of them refuse us), config (all of them answer,
// and none knows the master), interrupted. REQUIRES: the address is one of Sentinels.
Result<Named> find_master(const Address& address, const Until& until);

// That server of a cluster.
Endpoint endpoint_of(const Address& address, const Host& node);

// Asks the servers that are known, and those of the address, one after the other, each for its share of the time left
// and a second at most, until one says who keeps which slot, and notes that in address.slots. Returns the connection to
// the one that has answered. A password that changes is read once, before all of that, in as much of the time as it
// takes. Errors: those of Connection::open and server_error; unavailable (none answers), config (it is no cluster). The
// failures count as both() says. REQUIRES: the address is one of a cluster.
Result<Connection> learn_slots(const Address& address, const Until& until);

}  // namespace rlock::redis
