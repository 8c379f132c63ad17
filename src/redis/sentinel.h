// SPDX-License-Identifier: MIT
// Which server is the master now, as Redis Sentinel says (redis.io, "Guidelines for Redis clients").
#pragma once

#include "base/error.h"
#include "base/wait.h"
#include "redis/address.h"

namespace rlock::redis {

struct Named {
  Host master;
  bool by_most = false;  // more than half of the Sentinels have answered
  long long epoch = 0;   // of the failover by which it became the master
};

// Asks the Sentinels one after the other, those last that did not answer the last time, each for its share of the time
// left and a second at most, until more than half of them have named a master. Of these answers, and of fewer where there
// are no more, the one with the highest configuration epoch counts: it comes from the latest failover that any of them has
// heard of, while a Sentinel behind a partition goes on naming the old master.
// Errors: unavailable (none that knows the master answers, and some may later), untrusted, denied (all of them refuse
// us), config (all of them answer, and none knows the master), interrupted.
// REQUIRES: the address is one of Sentinels.
Result<Named> find_master(const Address& address, const Until& until);

}  // namespace rlock::redis
