// SPDX-License-Identifier: MIT
// The frontend's part in the life of a job. Pure: it is told what was received and sent, and says what follows.
#pragma once

#include "run/guard_state.h"
#include "run/life.h"

namespace rlock::run {

class FrontendLife {
 public:
  // From the monitor.
  void take(const Packet& packet);
  // The monitor hears nothing more: it is ending, or dead.
  void close() { closed_ = true; }
  bool closed() const { return closed_; }

  // Whether the command is there, and was not started yet.
  bool ready() const { return ready_; }
  // The result of sending `go`; Sent::yes if the monitor has had the lock from the start.
  void went(Sent sent);
  // Whether the monitor has the lock.
  bool gone() const { return gone_; }

  // The signal that has stopped the command, until we have stopped, too; 0 if none.
  int stopped_by() const { return stopped_by_; }
  void was_stopped() { stopped_by_ = 0; }

  // What remains to be done once the monitor has died.
  enum class Rest {
    release,    // it had no lock, and started nothing: the lock is still ours
    take_over,  // it left no result: nobody renews, and the rest of the tree has become ours
    warn,       // it was killed when the tree was empty, perhaps before it released the lock
    nothing,
  };
  // `begun`, `end`: as in the shared page. `killed`: the monitor died of a signal.
  Rest rest(bool begun, JobEnd::Kind end, bool killed) const;

 private:
  bool closed_ = false, ready_ = false, gone_ = false;
  int stopped_by_ = 0;
};

}  // namespace rlock::run
