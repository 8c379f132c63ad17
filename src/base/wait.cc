// SPDX-License-Identifier: MIT
#include "base/wait.h"

#include <poll.h>

#include <algorithm>
#include <optional>

#include "base/timer.h"

namespace rlock {
namespace {

// poll(2) stands still while the machine is suspended. A short wait may: that costs no more than its own length. A
// longer one has a timer that does not.
constexpr milliseconds kShort = 1s;

// Readable when `then` has come. None: there is no timer to be had, and looking at the clock again each second will do.
std::optional<Timer> timer_for(TimePoint then) {
  auto timer = Timer::make();
  if (!timer) return {};
  timer->set(then);
  return std::move(*timer);
}

}  // namespace

WaitEnd wait_for(int fd, short events, const Until& end) {
  const bool endless = end.deadline == TimePoint::max();
  std::optional<Timer> timer;
  pollfd watched[] = {{end.interrupt, POLLIN, 0}, {fd, events, 0}, {-1, POLLIN, 0}};
  for (bool first = true;; first = false) {
    const milliseconds left = until(end.deadline);
    // What comes soon, as an answer does, is spared the timer.
    const bool is_long = left > kShort && (fd < 0 || !first);
    if (is_long && !timer && !endless) {
      timer = timer_for(end.deadline);
      if (timer) watched[2].fd = timer->fd();
    }
    const bool woken = timer || endless;
    const int ready = poll(watched, std::size(watched), woken ? -1 : static_cast<int>(std::min(left, kShort).count()));
    if (ready > 0 && watched[0].revents) return WaitEnd::interrupted;
    if (ready > 0 && watched[1].revents) return WaitEnd::ready;
    if (left == 0ms) return WaitEnd::deadline;
  }
}

}  // namespace rlock
