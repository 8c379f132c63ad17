// SPDX-License-Identifier: MIT
// The clock that leases are measured on.
//
// CLOCK_BOOTTIME (clock_gettime(2)): it never steps, and unlike CLOCK_MONOTONIC, which
// std::chrono::steady_clock uses, it goes on while the machine is suspended, as the lease on the
// server does.
#pragma once

#include <chrono>
#include <cstdint>

namespace rlock {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  static time_point now();
};

using TimePoint = BootClock::time_point;

// How long from `now` to `then` in whole milliseconds, rounded up so that a poll(2) of that length does
// not end early; 0 if `then` has passed.
milliseconds until(TimePoint then, TimePoint now = BootClock::now());

// What ends a wait: a point in time, or a descriptor that becomes readable (a signal has arrived).
// Every call of the redis floor takes one and covers all that it does with it.
struct Until {
  TimePoint deadline = TimePoint::max();
  int interrupt = -1;  // not owned

  // The same, but over after `span` at the latest.
  Until at_most(milliseconds span) const;
  Until at_most(TimePoint then) const { return {then < deadline ? then : deadline, interrupt}; }
  bool over() const { return BootClock::now() >= deadline; }
};

enum class WaitEnd { ready, deadline, interrupted };

// Waits until `fd` has one of `events` (poll(2)), or `until` ends. `fd` -1: only for `until`.
// `interrupted` wins where several things have happened.
WaitEnd wait_for(int fd, short events, const Until& until);

}  // namespace rlock
