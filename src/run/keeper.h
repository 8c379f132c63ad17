// SPDX-License-Identifier: MIT
// The keeper: a background process that keeps a lock as long as another process lives (acquire --for-pid).
#pragma once

#include "lock/servers.h"
#include "run/command.h"
#include "run/signals.h"
#include "verbs/lease.h"

namespace rlock::run {

// A descriptor that becomes readable when the process ends, even if its pid is used again. Errors: usage (there is no
// such process, it has ended, it belongs to another user and we are not root, or it is this process or its child),
// system.
Result<UniqueFd> watch_process(pid_t pid);

// Forks the keeper as a daemon (daemon(7)): in its own session, so that it survives its terminal; in the root folder;
// without what `inherited` and the standard streams have open; and without the variables by which CI systems would find
// and kill it. On return it is complete and already renews the lock, but waits for a line on the returned pipe, which
// hands the lock to it. If that is closed before, the keeper exits and does not touch the lock.
// Then it renews `holds` until `watched` is readable, somebody asks for the lock (lock::ask_to_stop), or a deadly
// signal comes; then it releases them and exits. `in_history` is the holder for the history; none if no history is
// written. Its messages go to syslog(3). Errors: system. REQUIRES: this process has one thread, and `signals` holds
// signals back.
Result<UniqueFd> launch_keeper(std::span<const lock::Hold> holds, const lock::LeaseTiming& timing,
                               lock::Servers& client, const UniqueFd& watched, const Inherited& inherited,
                               SignalBlock& signals, const std::optional<lock::HolderInfo>& in_history);

}  // namespace rlock::run
