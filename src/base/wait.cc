// SPDX-License-Identifier: MIT
#include "base/wait.h"

#include <poll.h>
#include <sys/epoll.h>

namespace rlock {
namespace {

// poll(2) does not count the time that the machine is suspended. For a short wait that does not matter; a longer one
// uses a timer that does.
constexpr milliseconds kShort = 1s;

}  // namespace

Result<UniqueFd> make_event() {
  UniqueFd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return std::unexpected(system_error("eventfd"));
  return event;
}

Result<UniqueFd> readable_with_any(std::span<const int> fds) {
  UniqueFd any(epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : fds) {
    epoll_event readable{.events = EPOLLIN, .data = {}};
    if (!any || epoll_ctl(any.get(), EPOLL_CTL_ADD, fd, &readable) != 0) return std::unexpected(system_error("epoll"));
  }
  return any;
}

WaitEnd wait_for(int fd, short events, const Until& end) {
  const bool forever = end.deadline == TimePoint::max();
  std::optional<Timer> timer;
  // The kernel looks at them in this order, so what came after a signal, such as the Enter after Ctrl-C, is not seen
  // without it.
  pollfd watched[] = {{fd, events, 0}, {end.interrupt, POLLIN, 0}, {-1, POLLIN, 0}};
  // Most answers come soon, so the first wait is without a timer.
  for (bool timer_pays = fd < 0;; timer_pays = true) {
    const milliseconds left = until(end.deadline);
    if (timer_pays && !timer && left > kShort && !forever) {
      // If there are no more timers, look at the clock each second.
      if (auto made = Timer::make()) timer.emplace(*std::move(made)).set(end.deadline);
    }
    if (timer) watched[2].fd = timer->fd();
    const int limit = timer || forever ? -1 : static_cast<int>(std::min(left, kShort).count());
    poll(watched, std::size(watched), limit);
    if (watched[1].revents) return WaitEnd::interrupted;
    if (watched[0].revents) return WaitEnd::ready;
    if (left == 0ms) return WaitEnd::deadline;
  }
}

}  // namespace rlock
