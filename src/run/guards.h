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
#include "run/frontend_timer.h"
#include "run/guard_state.h"
#include "run/job.h"

namespace rlock::run {

class Guards {
 public:
  // Forks the monitor of `job`, which forks the command; they wait for `go`. They end when this object is destroyed or
  // this process dies, and nothing has been executed then. The monitor has a copy of the job, which may be one that has
  // no lock yet: the tokens of its holds come later. The new process begins with `disconnect`, to close its copies of
  // connections that are not `client`'s; none: there are none, and somebody waits for the guards. Errors: system.
  // REQUIRES: this process has one thread, but for lookups that were given up: while one of them is left, this fails.
  static Result<std::unique_ptr<Guards>> start(const Job& job, redis::Client& client, SignalBlock& signals,
                                               const std::function<void()>& disconnect = {});
  Guards(const Guards&) = delete;
  Guards& operator=(const Guards&) = delete;
  ~Guards();

  // They were forked for these holds, and live.
  bool fit(const std::vector<lock::Hold>& holds) const;

  pid_t monitor() const { return monitor_; }
  int alive() const { return alive_.get(); }          // pidfd of the monitor, readable once it is dead
  int monitor_status();                               // of waitpid(2), once it is dead, which is waited for
  bool ended() const { return status_.has_value(); }  // monitor_status() has been asked for: its pid is free
  int guard_socket() const { return socket_.get(); }  // socket to the monitor
  GuardState& shared() const { return *shared_; }
  FrontendTimer& timer() { return *timer_; }
  std::set<pid_t>& children() { return children_; }  // that this process had before: not of the job's tree

 private:
  explicit Guards(const std::vector<lock::Hold>& holds) : holds_(holds) {}

  std::vector<lock::Hold> holds_;
  std::unique_ptr<GuardState, GuardState::Unmap> shared_;
  std::optional<FrontendTimer> timer_;
  std::set<pid_t> children_;
  UniqueFd socket_, alive_;
  pid_t monitor_ = -1;
  std::optional<int> status_;
};

}  // namespace rlock::run
