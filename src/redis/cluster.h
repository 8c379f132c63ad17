// SPDX-License-Identifier: MIT
// Which server of a cluster keeps a slot now (redis.io, "Redis cluster specification").
#pragma once

#include <optional>

#include "base/error.h"
#include "redis/address.h"
#include "redis/connection.h"

namespace rlock::redis {

// REQUIRES of all: the address is one of a cluster.

// That server of it.
Endpoint endpoint_of(const Address& address, const Host& node);

// Asks the servers that are known, and those of the address, one after the other, each for its share of the time left
// and a second at most, until one says who keeps which slot, and notes that in address.slots. Returns the connection to
// the one that has answered. A password that changes is read once, before all of that, in as much of the time as it takes.
// Errors: those of Connection::open and server_error; unavailable (none answers), config (it is no cluster). The failures
// count as both() says.
Result<Connection> learn_slots(const Address& address, const Until& until);

// A connection to the server that keeps `slot`; none: to any that keeps one. Asks who it is where that is not known, and
// asks another server where it cannot be reached: a replica may have taken its place. The first one that names the lost one
// again is cut off, perhaps, and one more is asked.
// One that may not get the password ends the search. Errors: those of learn_slots and Connection::open; unavailable
// (nobody keeps the slot).
Result<Connection> connect_to_owner(const Address& address, std::optional<int> slot, const Until& until);

}  // namespace rlock::redis
