// SPDX-License-Identifier: MIT
// The clock for leases, CLOCK_BOOTTIME: it never steps, and unlike CLOCK_MONOTONIC (std::chrono::steady_clock) it
// continues while the machine is suspended, as the lease on the server does.
#pragma once

#include <time.h>

#include <chrono>

namespace rlock {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  static time_point now() {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
  }
};

using TimePoint = BootClock::time_point;

// The time from `now` to `then`, rounded up so that a poll(2) of that length does not end early; 0 if `then` has
// passed.
inline milliseconds until(TimePoint then, TimePoint now = BootClock::now()) {
  return then <= now ? 0ms : std::chrono::ceil<milliseconds>(then - now);
}

}  // namespace rlock
