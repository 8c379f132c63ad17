// SPDX-License-Identifier: MIT
// Finds the server of an address that keeps the locks now: the server itself, the one that Redis Sentinel names as the
// master (redis.io, "Guidelines for Redis clients"), or the one of a cluster that keeps a slot ("Redis cluster
// specification"). Nothing above knows how many servers an address stands for.
#pragma once

#include "redis/address.h"
#include "redis/connection.h"

namespace rlock::redis {

// A connection to that server; in a cluster, to the one that keeps `slot`, or to any. Asks name servers and Sentinels
// each time, because another server may have replaced it in a failover. Errors: those of Connection::open, find_master
// and learn_slots; unavailable if the server that the Sentinels name says that it is a replica, or no server keeps the
// slot. `again`: the address was served before, so a password, a right or a certificate that is refused now is probably
// being changed on either side: unavailable instead of denied, untrusted and config, because trying again may help.
Result<Connection> connect(const Address& address, std::optional<int> slot, const Until& until, bool again);

struct Named {
  Host master;
  bool by_most = false;  // more than half of the Sentinels have answered
  long long epoch = 0;   // of the failover by which it became the master
};

// Asks the Sentinels one after another. Each gets its share of the remaining time, but at most a second. If more than
// half of them have named a master, the others get 200 ms, or 50 ms if they were silent last time. The answer with the
// highest configuration epoch counts, even if the others agree: it comes from the latest failover, of which the
// Sentinel that led it knows first, while one behind a partition goes on naming the old master. Of equal epochs, what
// most say counts. Errors: unavailable (none that knows the master answers, and some may later), untrusted, denied (all
// of them refuse us), config (all of them answer, and none knows the master), interrupted. REQUIRES: an address with
// Sentinels.
Result<Named> find_master(const Address& address, const Until& until);

// Asks the known servers and those of the address, one after another, until one says which server keeps which slot, and
// notes that in address.slots. Each gets its share of the remaining time, but at most a second. Returns the connection
// to the server that answered. A password that changes is read once, before all of that, without such a limit. Errors:
// those of Connection::open and server_error, combined by both(); unavailable (none answers), config (it is not a
// cluster). REQUIRES: the address of a cluster.
Result<Connection> learn_slots(const Address& address, const Until& until);

}  // namespace rlock::redis
