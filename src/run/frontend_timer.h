// SPDX-License-Identifier: MIT
#pragma once

#include "base/timer.h"
#include "lock/lease.h"
#include "run/guard_state.h"

namespace rlock::run {

// The timer for the deadline that the frontend keeps (Deadlines::frontend_acts_at). The frontend, the process in its
// place while it is stopped, and the monitor have it in common: the monitor moves it on with each renewal, so that the
// frontend does not wake up for a deadline that is none any more.
class FrontendTimer {
 public:
  FrontendTimer(Timer timer, const lock::LeaseTiming& timing) : timer_(std::move(timer)), timing_(timing) {}

  int fd() const { return timer_.fd(); }

  // Sets it for the deadline as it is now. False: it is time.
  bool set_for(const GuardState& shared);
  // The same for who does not wait for it; it is readable at once if it is time.
  void move_on(const GuardState& shared) { timer_.set(act_at(shared)); }
  void set(TimePoint when) { timer_.set(when); }

 private:
  TimePoint act_at(const GuardState& shared) const;

  Timer timer_;
  lock::LeaseTiming timing_;
};

}  // namespace rlock::run
