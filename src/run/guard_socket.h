// SPDX-License-Identifier: MIT
// The socket between frontend and monitor.
#pragma once

#include "base/unique_fd.h"

namespace rlock::run {

// The messages between the guards, a packet each.
struct Packet {
  enum class Kind {
    ready,   // to the frontend: the command is there
    signal,  // to the monitor: this has reached the frontend
    go,  // to the monitor that waits for it: the lock is ours; comes with the connection, and after what came before
         // `ready`
    stopped,  // to the frontend: the command has been stopped by that signal; stop, too
  };
  Kind kind = Kind::signal;
  int number = 0;
  bool from_terminal = false;  // the command has had it already, if it was there
};

// `no_room` is every trouble that may pass.
enum class Sent { yes, no_room, nobody_there };
// Never waits. `fd`: goes with it, unless too many are on their way already (unix(7), ETOOMANYREFS); -1: none does.
Sent send_packet(int socket, Packet packet, int fd = -1);

enum class Received { packet, nothing, nobody_there };
// Never waits. `fd`, if it is not null, gets the descriptor that came with the packet, if one did.
Received receive_packet(int socket, Packet& packet, UniqueFd* fd = nullptr);

}  // namespace rlock::run
