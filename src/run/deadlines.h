// SPDX-License-Identifier: MIT
// Every point in time that follows from the last request by which the server keeps the lock. Pure arithmetic.
#pragma once

#include <algorithm>

#include "base/clock.h"
#include "lock/lease.h"

namespace rlock::run {

// How often processes that do not die are looked at again.
inline constexpr milliseconds kLongestLook = milliseconds(100);

// By what the server keeps the lock for us.
struct Promise {
  TimePoint sent = TimePoint::max();  // just before the last request that succeeded was sent; max(): there was none yet
  milliseconds shortened_by{};        // the server's clock has run ahead, and may again: what we may do ends sooner
  bool operator==(const Promise&) const = default;
};

class Deadlines {
 public:
  Deadlines(const lock::LeaseTiming& timing, const Promise& promise) : timing_(timing), promise_(promise) {}

  // SIGTERM: the lock counts as lost.
  TimePoint terminate_at() const { return after(timing_.terminate_at - promise_.shortened_by); }
  // SIGKILL: the tree must be dead.
  TimePoint kill_at() const { return after(timing_.kill_at - promise_.shortened_by); }
  // The server cannot have ended the lease before.
  TimePoint ends_at() const { return after(timing_.ends_at - promise_.shortened_by); }
  // The server has ended the lease by then if nobody renews or releases it. `min_hold`: see Job.
  TimePoint runs_out_at(milliseconds min_hold) const { return after(std::max(timing_.lease, min_hold)); }

  // When the frontend kills the tree if the monitor has not. A quarter of the second that the deadline keeps free for
  // guards is the monitor's, which can also release. A monitor that goes on killing, `last_killing`, is alive: without
  // it nobody would keep the lock until the last one has died.
  TimePoint frontend_acts_at(TimePoint last_killing) const {
    const TimePoint from = std::max(kill_at(), last_killing + kKillingCounts);
    return from == TimePoint::max() ? from : from + lock::scaled(milliseconds(250), timing_.lease);
  }

 private:
  static constexpr milliseconds kKillingCounts = 2 * kLongestLook;

  TimePoint after(milliseconds span) const {
    return promise_.sent == TimePoint::max() ? promise_.sent : promise_.sent + span;
  }

  lock::LeaseTiming timing_;
  Promise promise_;
};

}  // namespace rlock::run
