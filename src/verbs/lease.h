// SPDX-License-Identifier: MIT
// When a lease has to be renewed, and when everything that runs under it must be dead. Pure arithmetic.
//
// Let s be the time just before the last successful acquire or renewal was sent. Everything must have been killed at
//     s + lease · 0.99 - 500 ms - 1 s
// docs/proof.md, The timing proof, says why. This is Redlock's validity time (Redis documentation, "Distributed Locks
// with Redis") with its drift spelled out.
#pragma once

#include "base/clock.h"

namespace rlock::lock {

inline constexpr milliseconds kDefaultLease = 30s;
inline constexpr milliseconds kShortestLease = 1s;
// The longest lease that a reader gets: each renewal by a Java reader beside it sets the time of the whole lock to
// Redisson's lockWatchdogTimeout (RedissonReadLock, ReadLockTask), which is 30 s by default, and before 4.4.0 that of
// every reader. If it is configured to be shorter, the lease has to be shorter, too.
inline constexpr milliseconds kLongestReaderLease = 30s;
// The two fixed margins shrink in proportion for leases shorter than this.
inline constexpr milliseconds kFullMarginLease = 5s;

// The size of a margin for a lease of that length.
constexpr milliseconds scaled(milliseconds margin, milliseconds lease) {
  return lease >= kFullMarginLease ? margin : margin * lease.count() / kFullMarginLease.count();
}

// Offsets from s.
struct LeaseTiming {
  milliseconds lease{};
  milliseconds renew_at{};       // lease / 3
  milliseconds terminate_at{};   // SIGTERM
  milliseconds kill_at{};        // SIGKILL; the deadline
  milliseconds ends_at{};        // the server cannot have ended the lease before this, given the clocks above
  milliseconds clock_step{};     // how far the server's clock may step forward during one lease
  milliseconds retry_every{};    // after a failed renewal
  milliseconds renew_timeout{};  // for one renewal, including the time to connect

  // `grace` is the time between SIGTERM and SIGKILL; `renewed` says that the lease is going to be renewed. Errors
  // (usage): the lease is shorter than kShortestLease, or the grace leaves no time to renew it, or none for the
  // command.
  static Result<LeaseTiming> make(milliseconds lease, milliseconds grace, bool renewed = true);

  // min(5 s, lease / 6)
  static milliseconds default_grace(milliseconds lease);
};

// How long the next renewal of a lease has been missing, if the last one was `ago`. It is 0 until the delay exceeds
// what a renewal may take (LeaseTiming::renew_timeout, but at least 500 ms).
milliseconds overdue_for(milliseconds lease, milliseconds ago);

}  // namespace rlock::lock
