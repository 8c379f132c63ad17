// SPDX-License-Identifier: MIT
// Running a command under a lock, in three processes:
//   frontend  the process that calls run_job, whose pid the user sees: signals and job control. No Redis, once the
//             monitor has the connection
//   monitor   its child, in its own session (or, if there are hooks and a shell, only in its own process group): renews
//             the lock, watches the tree, releases the lock
//   command   the monitor's child, in the frontend's process group, so that the terminal treats it as it would without
//             rlock
// Frontend and monitor are the guards: both are subreapers, and both kill the tree by the deadline in shared memory. If
// one dies, the other ends the tree at once. Monitor and command may exist before we have the lock.
#pragma once

#include "lock/servers.h"
#include "run/guard_state.h"
#include "run/job.h"
#include "run/signals.h"

namespace rlock::run {

struct Guards;

// The guards of the next waiter in the queue, forked before it has the lock, so that they cost the hand-off no time.
class GuardsAhead {
 public:
  // Whether they should be started for that hold. After three failures it returns false; then they are started with the
  // grant, and failures are reported.
  bool are_missing(const lock::Hold& expected);

  // Forks them for a copy of the job, which has no tokens yet. They wait for run_job(). If this object is destroyed or
  // this process dies before, they end without executing anything. The new process first calls `disconnect`, which
  // closes its copies of connections that do not belong to `client`. REQUIRES: this process has one thread.
  void start(Job job, lock::Servers& client, SignalBlock& signals, const std::function<void()>& disconnect);

  std::shared_ptr<Guards> hand_over() { return std::move(guards_); }

 private:
  std::shared_ptr<Guards> guards_;
  std::optional<Job> job_;  // theirs; kept, because freeing it would copy pages that it shares with the monitor
  int tries_left_ = 3;
};

// Runs the command, renews the lock meanwhile, and releases it when the whole tree has ended (waitpid(2) returns
// ECHILD). Returns how the job ended, after all messages and hooks. `guards`: those forked ahead of the lock; if they
// are null or no longer fit, new ones are forked.
// Errors: system (no guard could be started), interrupted (a signal that asks to end is pending); then the command has
// not run, and the lock was released. REQUIRES: this process has one thread.
Result<JobEnd> run_job(const Job& job, std::shared_ptr<Guards> guards, lock::Servers client, SignalBlock& signals);

// What a new monitor knows about the frontend that forked it.
struct ForkedBy {
  pid_t pid;
  int socket;            // to it; not owned
  FrontendTimer& timer;  // the frontend's
  bool ahead;            // forked ahead of the lock, so `go` will come; false: the lock is there
};

// Runs the monitor's part of run_job in its own process.
[[noreturn]] void run_monitor(const JobContext& context, const ForkedBy& frontend);

}  // namespace rlock::run
