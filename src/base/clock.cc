// SPDX-License-Identifier: MIT
#include "base/clock.h"

#include <poll.h>
#include <time.h>

#include <algorithm>

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

Until Until::at_most(milliseconds span) const { return at_most(BootClock::now() + span); }

WaitEnd wait_for(int fd, short events, const Until& end) {
  // poll(2) stands still while the machine is suspended: look at the clock again at least this often.
  constexpr milliseconds longest = 1s;
  pollfd watched[2] = {{end.interrupt, POLLIN, 0}, {fd, events, 0}};
  for (;;) {
    const milliseconds left = until(end.deadline);
    const int ready = poll(watched, 2, static_cast<int>(std::min(left, longest).count()));
    if (ready > 0 && watched[0].revents) return WaitEnd::interrupted;
    if (ready > 0 && watched[1].revents) return WaitEnd::ready;
    if (left == 0ms) return WaitEnd::deadline;
  }
}

}  // namespace rlock
