// SPDX-License-Identifier: MIT
// The epoch guard: a server that may have forgotten grants gives none to newcomers until all of these have run out.
// lua/features/02_epoch.lua has the rule and its record; this file asks for the guard, lock/epoch.h shows and ends it.
//
// A grant that a server has forgotten ends with its lease, so two jobs never hold the lock at once if the server waits
// for the longest lease first. Redlock's authors propose the same for restarts ("delayed restarts", Redis
// documentation, "Distributed Locks with Redis").
#pragma once

#include "redis/client.h"
#include "verbs/answers.h"

namespace rlock::lock {

enum class Guard {
  off,
  data,  // the data outlives restarts of the server, so only their loss counts
  life,  // each start and each promotion of a replica counts, too
};

// How a server at this address is asked. `wanted`: none: as its kind needs it. A cluster has no guard.
Guard guard_of(const redis::Address& address, std::optional<bool> wanted = {});

// How long a master that was cut off, and has been replaced, may go on granting locks: min-replicas-max-lag, by default
// 10 s, which the server counts in whole seconds, and checks once a second (refreshGoodSlavesCount in Redis'
// replication.c). rlock doctor asks for no more than the default.
inline constexpr milliseconds kReplacedMasterGrants = 12s;

// That of a server at this address, as far as it is known.
milliseconds lag_of(const redis::Address& address);
// Whether the data of a server at this address outlives its restarts.
bool outlives_restarts(const redis::Address& address);

// What a request tells the script of the guard (lua/features/02_epoch.lua).
struct GuardRequest {
  Guard guard = Guard::off;
  milliseconds lag{}, age{};
  std::string life;  // "": unknown, and so is the age
};

GuardRequest guard_request(const redis::Client& client, Guard guard);
// The same for a request for a lock, with what the Sentinels say about the master. Connects to it if necessary.
GuardRequest newcomer_guard(redis::Client& client, Guard guard, const Until& until);

}  // namespace rlock::lock
