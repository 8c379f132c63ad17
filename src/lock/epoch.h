// SPDX-License-Identifier: MIT
// What people see of the epoch guard (verbs/epoch.h), and how they end it.
#pragma once

#include "redis/server_info.h"
#include "verbs/epoch.h"

namespace rlock::lock {

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
