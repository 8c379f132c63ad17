// SPDX-License-Identifier: MIT
// Descriptors, and waiting for them with a deadline.
#pragma once

#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "base/clock.h"

namespace rlock {

// Owns a file descriptor and closes it; -1 for none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

// The system call that has just failed may succeed if it is repeated.
inline bool failed_for_now() { return errno == EAGAIN || errno == EINTR; }

// When to stop waiting: at a point in time, or when a descriptor becomes readable (a signal has arrived). Calls in
// src/redis/ take one, and it limits everything that they do.
struct Until {
  TimePoint deadline = TimePoint::max();
  int interrupt = -1;  // not owned

  // The same, but no longer than `span` from now, or until `then`.
  Until at_most(milliseconds span) const { return at_most(BootClock::now() + span); }
  Until at_most(TimePoint then) const { return {then < deadline ? then : deadline, interrupt}; }
  // The same, but no longer than until one of `all` equal parts of the remaining time has passed.
  Until share(int all) const { return at_most(until(deadline) / all); }
  bool over() const { return BootClock::now() >= deadline; }
};

enum class WaitEnd { ready, deadline, interrupted };
// The error for the last of them.
inline std::unexpected<Error> interrupted() { return fail(Error::Code::interrupted, "interrupted"); }

// Waits until `fd` has one of `events` (poll(2)) or `until` ends. With `fd` -1, waits only for `until`. If several
// things have happened, `interrupted` takes precedence.
WaitEnd wait_for(int fd, short events, const Until& until);

// A descriptor that one thread makes readable for others, eventfd(2), until it is cleared. Errors: system.
Result<UniqueFd> make_event();
inline void set_event(const UniqueFd& event) { eventfd_write(event.get(), 1); }
inline void clear_event(const UniqueFd& event) {
  eventfd_t unused;
  eventfd_read(event.get(), &unused);
}

// A descriptor that is readable while one of these is, epoll(7). Errors: system. REQUIRES: they stay open.
Result<UniqueFd> readable_with_any(std::span<const int> fds);

// A descriptor that becomes readable at a point in time, although the machine may sleep; poll(2) would sleep on.
class Timer {
 public:
  static Result<Timer> make() {
    Timer timer;
    timer.fd_ = UniqueFd(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!timer.fd_) return std::unexpected(system_error("timerfd"));
    return timer;
  }

  int fd() const { return fd_.get(); }

  // Sets it again, even if it has already expired.
  void set(TimePoint when) {
    const auto ns = std::max<BootClock::rep>(when.time_since_epoch().count(), 1);  // 0 would disarm it
    const itimerspec spec{{}, {ns / 1'000'000'000, ns % 1'000'000'000}};
    timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
  }

 private:
  UniqueFd fd_;
};

}  // namespace rlock
