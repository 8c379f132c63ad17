// SPDX-License-Identifier: MIT
// The epoch guard: a server that may have forgotten grants gives none to newcomers until all of these have run out.
// lua/features/02_epoch.lua has the rule and its record; this file asks for the guard, shows it to people, and ends it.
//
// A forgotten grant ends with its lease. So if the server first waits for the longest lease, two jobs never hold the
// lock at once. The authors of Redlock propose the same for restarts ("delayed restarts", Redis documentation,
// "Distributed Locks with Redis").
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

// The guard of a server at this address. Without `wanted`, it depends on the kind of server. A cluster has none.
Guard guard_of(const redis::Address& address, std::optional<bool> wanted = {});

// How long a master that was cut off and replaced may go on granting locks: for min-replicas-max-lag, and 2 s more,
// because the server counts whole seconds and checks once a second (refreshGoodSlavesCount in Redis' replication.c).
inline constexpr std::chrono::seconds kLongestLag = 10s;  // Redis' default; doctor fails a server with a longer one
inline constexpr milliseconds kReplacedMasterGrants = kLongestLag + 2s;

// The same for a server at this address; 0 if no Sentinels replace it.
milliseconds lag_of(const redis::Address& address);
// Whether the data of a server at this address outlives its restarts.
bool outlives_restarts(const redis::Address& address);

// What a request tells the script about the guard (lua/features/02_epoch.lua).
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
// The same, with the addition that only jobs with the guard wait, for people who look at the server.
std::string who_waits(const HeldBack& back);
// Which jobs have to wait because their own lease is too long; "": none.
std::string who_else_waits(const Epoch& epoch);

// The id that a server, unless it is private, gives to this life of its data. "": it gives none, or only zeros, as some
// relatives of Redis always do; then the guard cannot notice a restart.
std::string life_said_by(const redis::ServerInfo& server);

// The command that makes the record of a new private server (Guard::data), which has nothing to forget.
redis::Words first_epoch();

// Returns nothing if no job with the guard has asked the server. Errors: those of Client::call. REQUIRES: no cluster.
Result<std::optional<Epoch>> read_epoch(redis::Client& client, const Until& until);

// What a user sees of a server before deciding whether to end its guard.
struct EpochToAccept {
  std::string life;  // of its data
  std::string mark;  // in the record, so it is lost with the data; "": the key has another type
};

// Marks the record. Errors: of Client::call; protocol if the server does not say its life. REQUIRES: no cluster.
Result<EpochToAccept> mark_epoch(redis::Client& client, const Until& until);
// Takes that mark away again, as far as possible; another's stays.
void forget_mark(redis::Client& client, const std::string& mark, const Until& until);

// Ends the guard. REQUIRES: no cluster; the jobs whose locks the server may have forgotten before the record was marked
// have ended. `who`: who ends it, for the record. Replaces a key of another type. Errors: those of Client::call;
// unavailable if, since the mark, another life has begun, data was lost, or somebody else has ended the guard.
Result<void> accept_epoch(redis::Client& client, const EpochToAccept& shown, const std::string& who,
                          const Until& until);

}  // namespace rlock::lock
