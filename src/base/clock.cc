// SPDX-License-Identifier: MIT
#include "base/clock.h"

#include <time.h>

namespace rlock {

TimePoint BootClock::now() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return TimePoint(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

milliseconds until(TimePoint then, TimePoint now) {
  if (then <= now) return 0ms;
  return std::chrono::ceil<milliseconds>(then - now);
}

}  // namespace rlock
