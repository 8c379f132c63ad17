// SPDX-License-Identifier: MIT
#include "base/clock.h"

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <optional>

#include "base/timer.h"

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
  // poll(2) stands still while the machine is suspended. A short wait may: that costs no more than its own length. A
  // longer one has a timer that does not; what comes soon, as an answer does, is spared the timer.
  constexpr milliseconds is_short = 1s;
  std::optional<Timer> timer;
  pollfd watched[] = {{end.interrupt, POLLIN, 0}, {fd, events, 0}, {-1, POLLIN, 0}};
  for (bool first = true;; first = false) {
    const milliseconds left = until(end.deadline);
    const bool is_long = left > is_short && (fd < 0 || !first);
    if (is_long && !timer && end.deadline != TimePoint::max()) {
      // Where there is none to be had, looking at the clock again each second will do.
      if (auto made = Timer::make()) {
        timer = std::move(*made);
        timer->set(end.deadline);
        watched[2].fd = timer->fd();
      }
    }
    const bool woken = timer || end.deadline == TimePoint::max();
    const int ready = poll(watched, std::size(watched), woken ? -1 : static_cast<int>(std::min(left, is_short).count()));
    if (ready > 0 && watched[0].revents) return WaitEnd::interrupted;
    if (ready > 0 && watched[1].revents) return WaitEnd::ready;
    if (left == 0ms) return WaitEnd::deadline;
  }
}

}  // namespace rlock
