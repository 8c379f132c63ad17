// SPDX-License-Identifier: MIT
// One exchange: the commands of a round go to the servers that keep their slots, and their replies come.
#pragma once

#include <functional>

#include "base/error.h"
#include "base/wait.h"
#include "redis/connections.h"
#include "redis/reply.h"
#include "redis/slot.h"

namespace rlock::redis {

// Gets the reply to what is sent along, once for each connection.
using Heard = std::function<void(const Reply&)>;

// Sends the commands of connections.round: to servers that are connected before any other is connected to, and to all
// before the first reply is waited for. Follows MOVED and ASK, waits a little at TRYAGAIN, and shows the password once
// to a server that has forgotten it. Each command has a reply, which may be an error of the server, or an error, when
// this returns; neither where the time is over.
void exchange(Connections& connections, const Heard& heard, const Until& until);

// Waits for the replies to the commands of connections.round that were sent already, and follows nothing.
void receive(Connections& connections, const Heard& heard, const Until& until);

// How a server of a cluster refuses a command that it has not executed, because of where its slot is. Pure.
struct Refusal {
  enum class Kind {
    none,     // it is another reply
    moved,    // another server keeps the slot
    once,     // another server has to be asked, this time
    between,  // the slot is between two servers
  };
  Kind kind = Kind::none;
  Redirection to{};  // moved, once
};
Refusal refusal_of(const Reply& reply);

// The error of a connection over which more has come than replies.
Error too_much();

}  // namespace rlock::redis
