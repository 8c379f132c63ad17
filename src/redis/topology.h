// SPDX-License-Identifier: MIT
// From an address to the server that keeps the locks now. Nobody above knows how many servers an address stands for.
#pragma once

#include "redis/address.h"
#include "redis/connection.h"

namespace rlock::redis {

// A connection to that server. Names and Sentinels are asked again each time: after a failover another one has taken
// its place. Errors: those of Connection::open and find_master; unavailable where the server that the Sentinels name
// says that it is a replica.
Result<Connection> connect(const Address& address, const Until& until);

}  // namespace rlock::redis
