// SPDX-License-Identifier: MIT
// Waiting, and what ends it.
#pragma once

#include <sys/timerfd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/unique_fd.h"

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

// A descriptor that becomes readable at a point in time, and at once when a suspended machine wakes up
// after it (timerfd_create(2) with CLOCK_BOOTTIME; poll(2) alone would sleep on).
class Timer {
 public:
  static Result<Timer> make() {
    Timer timer;
    timer.fd_ = UniqueFd(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!timer.fd_) return std::unexpected(system_error("timerfd"));
    return timer;
  }

  int fd() const { return fd_.get(); }

  // Also forgets an earlier ending.
  void set(TimePoint when) {
    const auto ns = std::max<BootClock::rep>(when.time_since_epoch().count(), 1);  // 0 would disarm it
    const itimerspec spec{{}, {ns / 1'000'000'000, ns % 1'000'000'000}};
    timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
  }

 private:
  UniqueFd fd_;
};

}  // namespace rlock
