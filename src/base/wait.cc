// SPDX-License-Identifier: MIT
#include "base/wait.h"

#include <poll.h>

#include <algorithm>
#include <optional>

namespace rlock {
namespace {

// poll(2) stands still while the machine is suspended. A short wait may: that costs no more than its own length. A
// longer one has a timer that does not.
constexpr milliseconds kShort = 1s;

// Readable when `then` has come. None: it never comes, or there is no timer to be had, and looking at the clock again
// each second will do.
std::optional<Timer> timer_for(TimePoint then) {
  if (then == TimePoint::max()) return {};
  auto timer = Timer::make();
  if (!timer) return {};
  timer->set(then);
  return std::move(*timer);
}

// The limit for poll(2); -1, none, where `woken` says that a descriptor tells when the time is over, or it never is.
int poll_limit(bool woken, milliseconds left) { return woken ? -1 : static_cast<int>(std::min(left, kShort).count()); }

// The end that poll(2) has found for the wait, if it has.
std::optional<WaitEnd> end_in(const pollfd& interrupt, const pollfd& asked) {
  if (interrupt.revents) return WaitEnd::interrupted;
  if (asked.revents) return WaitEnd::ready;
  return {};
}

}  // namespace

WaitEnd wait_for(int fd, short events, const Until& end) {
  const bool endless = end.deadline == TimePoint::max();
  std::optional<Timer> timer;
  pollfd watched[] = {{end.interrupt, POLLIN, 0}, {fd, events, 0}, {-1, POLLIN, 0}};
  // An event that comes soon, as an answer does, is spared the timer.
  for (bool timer_pays = fd < 0;; timer_pays = true) {
    const milliseconds left = until(end.deadline);
    if (timer_pays && !timer && left > kShort) timer = timer_for(end.deadline);
    if (timer) watched[2].fd = timer->fd();
    if (poll(watched, std::size(watched), poll_limit(timer || endless, left)) > 0) {
      if (const auto found = end_in(watched[0], watched[1])) return *found;
    }
    if (left == 0ms) return WaitEnd::deadline;
  }
}

}  // namespace rlock
