// SPDX-License-Identifier: MIT
#include "run/frontend_timer.h"

namespace rlock::run {

// Never, once the tree is known to be empty.
TimePoint FrontendTimer::act_at(const GuardState& shared) const {
  if (shared.tree_empty) return TimePoint::max();
  return Deadlines(timing_, shared.promise()).frontend_acts_at(shared.last_killing());
}

// The deadline may also come nearer, and the monitor then sets the timer after it; the frontend's setting may come in
// between, so it looks again after it.
bool FrontendTimer::set_for(const GuardState& shared) {
  for (TimePoint at = act_at(shared); BootClock::now() < at;) {
    timer_.set(at);
    const TimePoint by_now = act_at(shared);
    if (by_now >= at) return true;
    at = by_now;
  }
  return false;
}

}  // namespace rlock::run
