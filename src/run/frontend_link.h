// SPDX-License-Identifier: MIT
// The frontend, seen from the monitor.
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/unique_fd.h"
#include "run/frontend_timer.h"
#include "run/guard_socket.h"

namespace rlock::run {

// The frontend, as the monitor that it has forked begins.
struct ForkedBy {
  pid_t pid;
  int socket;            // to it (run/guard_socket.h); not owned
  FrontendTimer& timer;  // its own, which is moved on with the deadline
  bool ahead;            // of the lock: it says `go` when that is there. Else the lock is there
};

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
