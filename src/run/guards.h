// SPDX-License-Identifier: MIT
// A monitor and its command that have been forked, seen from the frontend.
//
// They may be forked before the lock is ours, by a waiter whose turn is next: they wait for it, and cost the hand-off
// nothing any more.
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

// Counts what a guard or a keeper opens in its life, before there is a job: its own timers and events, connections that
// are opened again, the names that are looked up for them, hooks, and /proc, by which it finds what it has to kill. In
// the middle of a job nobody can be told: the lock would not be renewed, or part of the tree not be seen.
// Errors: system (mostly the limit of open files, RLIMIT_NOFILE in getrlimit(2), or no pidfd_open(2), without which no
// guard sees another one end).
Result<void> need_spare_fds();

class Guards {
 public:
  // Forks the monitor of `job`; it forks the command. Without `ahead` the lock is ours: the command begins at once, and
  // the connection of `client` is the monitor's from now on; this process has none.
  // `ahead` of the lock: monitor and command wait for `go`. They end when this object is destroyed or this process
  // dies, and nothing has been executed then. The monitor has a copy of the job; the tokens of its holds come later, by
  // tell_lock(). The new process begins with `disconnect`, to close its copies of connections that are not `client`'s.
  // Errors: system. REQUIRES: this process has one thread.
  static Result<std::unique_ptr<Guards>> start(
      const Job& job, lock::Servers& client, SignalBlock& signals, bool ahead,
      const std::function<void()>& disconnect = [] {});
  Guards(const Guards&) = delete;
  Guards& operator=(const Guards&) = delete;
  ~Guards();

  // They were forked for these holds, and live.
  bool fit(const std::vector<lock::Hold>& holds) const;
  // They were forked ahead, and wait for `go`.
  bool wait_for_go() const { return ahead_; }

  // Whether a signal of that number came before they were forked with the lock, so that they have not had what the
  // group was sent. Once.
  bool missed(int signal) { return came_before_.take(signal); }

  // Writes down what is known of the lock once it is ours: what the command gets of it, and the promise.
  void tell_lock(const Job& job);

  pid_t monitor() const { return monitor_; }
  int alive() const { return alive_.get(); }          // pidfd of the monitor, readable once it is dead; -1: it is dying
  int monitor_status();                               // of waitpid(2), once it is dead, which is waited for
  bool ended() const { return status_.has_value(); }  // monitor_status() has been asked for: its pid is free
  int guard_socket() const { return socket_.get(); }  // socket to the monitor
  GuardState& shared() const { return *shared_; }
  FrontendTimer& timer() { return *timer_; }
  // Of the agent, as PasswordAgent::ended_fd(); -1: there is none.
  int agent_ended() const { return agent_ ? agent_->ended_fd() : -1; }
  // Has its work go on in a new process, unless nobody needs it. REQUIRES: agent_ended() is readable; this process has
  // one thread.
  void replace_agent(const SignalBlock& signals);
  std::set<pid_t>& children() { return children_; }  // that this process had before: not of the job's tree

 private:
  Guards(const std::vector<lock::Hold>& holds, bool ahead) : holds_(holds), ahead_(ahead) {}

  std::vector<lock::Hold> holds_;
  bool ahead_;
  HeldSignals came_before_;
  std::unique_ptr<GuardState, GuardState::Unmap> shared_;
  std::optional<FrontendTimer> timer_;
  std::unique_ptr<PasswordAgent> agent_;  // where the monitor could not read the password by itself
  std::set<pid_t> children_;
  UniqueFd socket_, alive_;
  pid_t monitor_ = -1;
  std::optional<int> status_;
};

// Guards that are there before the lock is: the next waiter in the queue has them ready, so that nobody waits for them
// once it holds the lock.
class GuardsAhead {
 public:
  // There are none for that hold, and it can be tried to start them. If they cannot be started, or die, three times,
  // that is tried again and reported when the lock is there.
  bool are_missing(const lock::Hold& expected);

  // As Guards::start().
  void start(const Job& job, lock::Servers& client, SignalBlock& signals, const std::function<void()>& disconnect);

  std::unique_ptr<Guards> hand_over() { return std::move(guards_); }

 private:
  std::unique_ptr<Guards> guards_;
  int tries_left_ = 3;
};

}  // namespace rlock::run
