// SPDX-License-Identifier: MIT
// The socket between frontend and monitor.
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/unique_fd.h"
#include "run/guard_state.h"

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

// The frontend, as the monitor that it has forked begins.
struct ForkedBy {
  pid_t pid;
  int socket;            // to it (run/guard_socket.h); not owned
  FrontendTimer& timer;  // its own, which is moved on with the deadline
  bool ahead;            // of the lock: it says `go` when that is there. Else the lock is there
};

// The frontend, seen from the monitor.
class FrontendLink {
 public:
  // Errors: system (it has died).
  static Result<FrontendLink> open(const ForkedBy& frontend);

  bool is_dead() const;
  int died_fd() const { return process_.get(); }  // readable once it has died
  int guard_socket() const { return socket_; }

  void tell(Packet::Kind kind, int number = 0) const { send_packet(socket_, {kind, number}); }
  // A packet that the frontend sends from now on fails there.
  void refuse_more() const;
  // Lets it go on if it is stopped.
  void wake() const;
  void move_timer(const GuardState& shared) const { timer_->move_on(shared); }

 private:
  FrontendLink(pid_t pid, int socket, FrontendTimer& timer, UniqueFd process)
      : pid_(pid), socket_(socket), timer_(&timer), process_(std::move(process)) {}

  pid_t pid_;
  int socket_;
  FrontendTimer* timer_;
  UniqueFd process_;
};

}  // namespace rlock::run
