// SPDX-License-Identifier: MIT
// The lock while a job runs under it: it is renewed, and whoever wants it can ask for it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "lock/quorum.h"
#include "run/guard_state.h"
#include "run/job.h"
#include "run/listener.h"
#include "run/renewer.h"

namespace rlock::run {

// Why the lock counts as lost.
struct Loss {
  std::string why;
  std::optional<std::size_t> hold;  // the index of the one that it is about; none: of all
  bool ours = true;                 // perhaps still: there is something to release
  std::string by = {};              // who has asked for it; "": nobody has

  static Loss by_request(const std::string& by, std::size_t hold) {
    return {"asked to give up the lock by " + by, hold, true, by};
  }
  bool concerns(std::size_t index) const { return !hold || *hold == index; }
};

class LockWatch {
 public:
  // Errors: system. REQUIRES: job, client and shared live longer.
  static Result<LockWatch> make(const Job& job, lock::Servers& client, GuardState& shared);

  // The lock is ours since `now`.
  void begin(TimePoint now);

  // The news of either thread.
  std::optional<Loss> lost() const;
  // Somebody has asked for it.
  bool asked() const { return listener_ && listener_->asked(); }
  bool renews() const { return renewer_ != nullptr; }

  // When to call go_on(), which starts a thread when it is time for it: one that hears requests to give up the lock,
  // and one that renews it.
  TimePoint goes_on_at() const;
  void go_on(TimePoint now);

  // Readable when something was lost, or asked for; -1: never.
  int lost_fd() const { return renewer_ ? renewer_->lost_fd() : -1; }
  int asked_fd() const { return listener_ ? listener_->asked_fd() : -1; }
  // Readable when there is a new promise, until take_move().
  int moved_fd() const { return renewer_ ? renewer_->moved_fd() : -1; }
  void take_move();

  // The threads do nothing from now on.
  void stop();

 private:
  void listen(TimePoint now);
  LockWatch(const Job& job, lock::Servers& client, GuardState& shared) : job_(job), client_(client), shared_(shared) {}

  const Job& job_;
  lock::Servers& client_;
  GuardState& shared_;
  TimePoint listen_at_ = TimePoint::max();  // known with the lock; max() again when that is done
  std::unique_ptr<Renewer> renewer_;
  std::unique_ptr<Listener> listener_;
};

}  // namespace rlock::run
