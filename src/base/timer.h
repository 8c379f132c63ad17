// SPDX-License-Identifier: MIT
#pragma once

#include <sys/timerfd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/unique_fd.h"

namespace rlock {

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
