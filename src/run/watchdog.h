// SPDX-License-Identifier: MIT
// When to renew, and until when the last renewal holds. Pure: time is given to it.
#pragma once

#include "base/clock.h"
#include "lock/lease.h"

namespace rlock::run {

class Watchdog {
 public:
  // `sent`: just before the acquire that succeeded was sent.
  Watchdog(const lock::LeaseTiming& timing, TimePoint sent);

  TimePoint next_renewal() const { return next_renewal_; }
  TimePoint terminate_at() const { return sent_ + timing_.terminate_at; }
  TimePoint deadline() const { return sent_ + timing_.kill_at; }

  // A renewal that was sent at `sent` was answered with success at `now`. False, and nothing changes, if the
  // answer came so late that what it promises is over: nothing is brought back to life.
  bool succeeded(TimePoint sent, TimePoint now);

  // A renewal failed in a way that leaves the outcome open.
  void failed(TimePoint now);

 private:
  lock::LeaseTiming timing_;
  TimePoint sent_;
  TimePoint next_renewal_;
};

}  // namespace rlock::run
