// SPDX-License-Identifier: MIT
// The things that the monitor of a job watches, and how they come to be.
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/wait.h"
#include "lock/quorum.h"
#include "run/command.h"
#include "run/guard_socket.h"
#include "run/guard_state.h"
#include "run/job.h"
#include "run/lock_watch.h"
#include "run/signals.h"

namespace rlock::run {

struct Charges {
  Timer timer;  // of the monitor
  FrontendLink frontend;
  GatedCommand command;
  LockWatch lock;

  // Makes this process, which was forked for it, the monitor of the job: a subreaper that leaves its process group,
  // with the command behind its gate, which is open where nothing is left to wait for. Errors: system (the frontend has
  // died, too); nothing was executed then. REQUIRES: what is passed lives longer.
  static Result<Charges> take(const Job& job, lock::Servers& client, SignalBlock& signals, GuardState& shared,
                              const ForkedBy& frontend);

  // `moved`: there is a new promise in the shared page.
  struct Ready {
    bool frontend_died = false, packets = false, moved = false;
  };
  // Waits until something of it has changed, a signal has come, or it is `next`. `frontend_lives`, `lock_kept`: as far
  // as is known; what is over is not waited for. Reads `signals`.
  Ready wait(SignalBlock& signals, TimePoint next, bool frontend_lives, bool lock_kept);
};

// For a job that was not started, when its command's gate is closed: nothing of the command stays, not even a zombie.
// If the frontend was killed, with the lock or while it waited for it, nobody else knows that nobody needs it.
void abandon(const Job& job, lock::Servers& client, const SignalBlock& signals, pid_t frontend);

}  // namespace rlock::run
