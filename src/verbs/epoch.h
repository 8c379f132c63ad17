// SPDX-License-Identifier: MIT
// The epoch guard: a server that may have forgotten grants gives none to newcomers until all of these have run out.
// lua/features/02_epoch.lua has the rule and its record; this file asks for the guard, shows it to people, and ends it.
//
// A grant that a server has forgotten ends with its lease, so two jobs never hold the lock at once if the server waits
// for the longest lease first. Redlock's authors propose the same for restarts ("delayed restarts", Redis
// documentation, "Distributed Locks with Redis").
#pragma once

#include "redis/client.h"
#include "redis/server_info.h"
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

// The lag of a server at this address, as far as it is known.
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

// Why nothing is granted, and for how long, for people.
std::string why_held_back(const HeldBack& back);
// The same for people who have not asked for the guard.
std::string who_waits(const HeldBack& back);
// The same for jobs whose own lease is too long to be granted at once; "" if there are none.
std::string who_else_waits(const Epoch& epoch);

// What names the life of the data of a server that is not private. "": it does not say, or says only zeros, as some
// relatives of Redis always do; then no guard notices its restarts.
std::string life_said_by(const redis::ServerInfo& server);

// The command that makes the record of a new private server (Guard::data), which has nothing to forget.
redis::Words first_epoch();

// Without a guard on this server so far, there is no record. Errors: those of Client::call. REQUIRES: no cluster.
Result<std::optional<Epoch>> read_epoch(redis::Client& client, const Until& until);

// The state of a server that somebody is to decide about.
struct EpochToAccept {
  std::string life;  // of its data
  std::string mark;  // in the record, which is lost with the data; "": the key has another type
};

// Marks the record. Errors: of Client::call; protocol if the server does not say its life. REQUIRES: no cluster.
Result<EpochToAccept> mark_epoch(redis::Client& client, const Until& until);
// Takes the mark away again, as far as possible.
void forget_mark(redis::Client& client, const Until& until);

// Ends the guard, because the caller knows that no job runs that the server may have forgotten when the record was
// marked. `who`: who says so, which the record keeps. Replaces a key of another type. Errors: those of Client::call;
// unavailable if another life has begun, or data was lost or accepted by somebody else. REQUIRES: no cluster.
Result<void> accept_epoch(redis::Client& client, const EpochToAccept& shown, const std::string& who,
                          const Until& until);

}  // namespace rlock::lock
