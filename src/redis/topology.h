// SPDX-License-Identifier: MIT
// From an address to the server that keeps the locks now. Nobody above knows how many servers an address stands for.
#pragma once

#include <optional>

#include "redis/address.h"
#include "redis/connection.h"

namespace rlock::redis {

// A connection to that server; in a cluster, to the one that keeps `slot`, or to any. Names and Sentinels are asked again each time: after a failover another one has taken
// its place. Errors: those of Connection::open, find_master and connect_to_owner; unavailable where the server that the
// Sentinels name says that it is a replica.
Result<Connection> connect(const Address& address, std::optional<int> slot, const Until& until);

// The same for servers that have served this address before: a password, a right or a certificate that is refused now
// is being changed, on either side, and trying again may help. Errors: those of connect(), but unavailable in place of
// denied, untrusted and config.
Result<Connection> connect_again(const Address& address, std::optional<int> slot, const Until& until);

}  // namespace rlock::redis
