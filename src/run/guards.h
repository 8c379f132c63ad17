// SPDX-License-Identifier: MIT
// The frontend's view of a monitor and its command.
//
// A waiter whose turn is next forks them before it has the lock, so that they cost the hand-off no time.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/unique_fd.h"
#include "lock/servers.h"
#include "run/guard_state.h"
#include "run/job.h"
#include "run/password_command.h"

namespace rlock::run {

// Checks that enough descriptors are left for everything that a guard or keeper will open: timers, events, new
// connections and name lookups, hooks, and /proc, where it finds what to kill. Later, in the middle of a job, a failure
// would mean that the lock is not renewed, or that a part of the tree is missed. Errors: system (mostly RLIMIT_NOFILE,
// or no pidfd_open(2), without which no guard notices the other's end).
Result<void> need_spare_fds(const Inherited& inherited);

class Guards {
 public:
  // Forks the monitor of `job`, which forks the command. Without `ahead` we have the lock: the command starts at once,
  // and the connection of `client` goes to the monitor, so this process has none.
  // With `ahead`, both wait for `go`. If this object is destroyed or this process dies before, they end without
  // executing anything. The monitor has a copy of the job; the tokens of its holds come later, with tell_lock(). The
  // new process first calls `disconnect`, which closes its copies of connections that do not belong to `client`.
  // Errors: system. REQUIRES: this process has one thread.
  static Result<std::unique_ptr<Guards>> start(
      const Job& job, lock::Servers& client, SignalBlock& signals, bool ahead,
      const std::function<void()>& disconnect = [] {});
  Guards(const Guards&) = delete;
  Guards& operator=(const Guards&) = delete;
  ~Guards();

  // Whether they were forked for these holds, and live.
  bool fit(const std::vector<lock::Hold>& holds) const;
  // Whether they were forked ahead, and wait for `go`.
  bool wait_for_go() const { return ahead_; }

  // Whether a signal came before they were forked with the lock, so that they did not receive it with the process
  // group. True only once for each signal.
  bool missed(int signal) { return came_before_.take(signal); }

  // Stores in the shared page what is known once we have the lock: the command's variable, tokens, and the promise.
  void tell_lock(const Job& job);

  pid_t monitor() const { return monitor_; }
  int alive() const { return alive_.get(); }          // pidfd of the monitor; -1 if it is dying
  int monitor_status();                               // waits for it to end, and returns its status from waitpid(2)
  bool ended() const { return status_.has_value(); }  // monitor_status() was called, so its pid may be used again
  int guard_socket() const { return socket_.get(); }  // to the monitor
  GuardState& shared() const { return *shared_; }
  FrontendTimer& timer() { return *timer_; }
  // The same as PasswordAgent::ended_fd(); -1 without an agent.
  int agent_ended() const { return agent_ ? agent_->ended_fd() : -1; }
  // Starts the agent again, unless nobody needs it. REQUIRES: agent_ended() is readable; this process has one thread.
  void replace_agent(const SignalBlock& signals);
  std::set<pid_t>& children() { return children_; }  // from before, so not part of the job's tree

 private:
  Guards(const std::vector<lock::Hold>& holds, bool ahead) : holds_(holds), ahead_(ahead) {}

  std::vector<lock::Hold> holds_;
  bool ahead_;
  HeldSignals came_before_;
  std::unique_ptr<GuardState, GuardState::Unmap> shared_;
  std::optional<FrontendTimer> timer_;
  std::unique_ptr<PasswordAgent> agent_;  // if the monitor cannot read the password by itself
  std::set<pid_t> children_;
  UniqueFd socket_, alive_;
  pid_t monitor_ = -1;
  std::optional<int> status_;
};

// The guards of the next waiter in the queue, forked before it has the lock.
class GuardsAhead {
 public:
  // Whether they should be started for that hold. After three failures it returns false; then they are started with the
  // grant, and failures are reported.
  bool are_missing(const lock::Hold& expected);

  // See Guards::start().
  void start(Job job, lock::Servers& client, SignalBlock& signals, const std::function<void()>& disconnect);

  std::unique_ptr<Guards> hand_over() { return std::move(guards_); }

 private:
  std::unique_ptr<Guards> guards_;
  std::optional<Job> job_;  // theirs; kept, because freeing it would copy pages that it shares with the monitor
  int tries_left_ = 3;
};

}  // namespace rlock::run
