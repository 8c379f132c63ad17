// SPDX-License-Identifier: MIT
// Waiting, and what ends it.
#pragma once

#include "base/clock.h"

namespace rlock {

// The end of a wait: a point in time, or a descriptor that becomes readable (a signal has arrived).
// Every call of the redis floor takes one and covers all that it does with it.
struct Until {
  TimePoint deadline = TimePoint::max();
  int interrupt = -1;  // not owned

  // The same, but over after `span` at the latest.
  Until at_most(milliseconds span) const { return at_most(BootClock::now() + span); }
  Until at_most(TimePoint then) const { return {then < deadline ? then : deadline, interrupt}; }
  bool over() const { return BootClock::now() >= deadline; }
};

enum class WaitEnd { ready, deadline, interrupted };

// Waits until `fd` has one of `events` (poll(2)), or `until` ends. `fd` -1: only for `until`.
// `interrupted` wins where several things have happened.
WaitEnd wait_for(int fd, short events, const Until& until);

}  // namespace rlock
