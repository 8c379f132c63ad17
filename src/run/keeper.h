// SPDX-License-Identifier: MIT
// A process in the background that keeps a lock for as long as another process lives: acquire --for-pid.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>

#include "base/error.h"
#include "base/unique_fd.h"
#include "lock/lease.h"
#include "lock/servers.h"
#include "run/inherited.h"
#include "run/signals.h"

namespace rlock::run {

// A descriptor that becomes readable when the process has ended, also if its pid is used again by then.
// Errors: usage (there is none, it has ended, it belongs to another user and we are not root, or it is this process
// or a child of it), system.
Result<UniqueFd> watch_process(pid_t pid);

class Keeper {
 public:
  // Forks the keeper as a daemon (daemon(7)): a session of its own, so that it survives its terminal, root folder,
  // nothing open of what `inherited` and the standard streams are, and no variable of its caller by which CI systems
  // would find and kill it. When this returns it has all that it needs, and renews the lock already; it waits for
  // begin(). Then it renews `holds` until `watched` is readable, until it is asked to give it up (see
  // lock::ask_to_stop), or gets a signal that would end it; then it releases them and ends. `in_history`: who holds
  // them, for the history; none: none is written. Its messages go to syslog(3). Errors: system. REQUIRES: one thread;
  // signals are held back by `signals`.
  static Result<Keeper> launch(std::span<const lock::Hold> holds, const lock::LeaseTiming& timing,
                               lock::Servers& client, const UniqueFd& watched, const Inherited& inherited,
                               SignalBlock& signals, const std::optional<lock::HolderInfo>& in_history = {});

  // From now on it keeps the lock. If the object ends without this, so does the keeper, and leaves the lock alone.
  void begin();

 private:
  UniqueFd go_;
};

}  // namespace rlock::run
