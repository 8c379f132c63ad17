// SPDX-License-Identifier: MIT
// One exchange: sends the commands of a round to the servers that keep their slots, and reads the replies.
#pragma once

#include "redis/connections.h"
#include "redis/reply.h"
#include "redis/slot.h"

namespace rlock::redis {

// Gets the reply to the command that is sent along, once for each connection.
using Heard = std::function<void(const Reply&)>;

// Sends the commands of connections.round, first to connected servers, and to all servers before it waits for the first
// reply. Follows MOVED and ASK, waits a little after TRYAGAIN, and logs in once to a server that has forgotten the
// login. Then each command has a reply, which may be an error reply, or an error; or neither if the time is over.
void exchange(Connections& connections, const Heard& heard, const Until& until);

// Reads the replies to the commands of connections.round that were already sent, and follows no redirections.
void receive(Connections& connections, const Heard& heard, const Until& until);

// How a server of a cluster refuses a command, without executing it, because of where its slot is. Pure.
struct Refusal {
  enum class Kind {
    none,     // it does not
    moved,    // another server keeps the slot
    once,     // ask another server, but only this time
    between,  // the slot is between two servers
  };
  Kind kind = Kind::none;
  Redirection to{};  // moved, once
};
Refusal refusal_of(const Reply& reply);

// The error if a server has sent more than its replies.
Error too_much();

}  // namespace rlock::redis
