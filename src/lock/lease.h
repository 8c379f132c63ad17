// SPDX-License-Identifier: MIT
// When a lease has to be renewed, and when what runs under it must be dead. Pure arithmetic.
//
// Let s be the time just before the bytes of the last acquire or renew that succeeded were sent. The server
// cannot free the lock before s + lease on its own clock, however late the reply came. Our clock and the
// server's may differ in rate by 1 % (NTP slews by 0.05 % at most, chrony by more), the server's may step
// forward by 500 ms, and 1 s is left for a guard to be scheduled and SIGKILL to take effect (912 ms were
// measured for a process of 10 GiB). Everything must have been killed at
//     s + lease · 0.99 - 500 ms - 1 s
// This is Redlock's validity time (Redis documentation, "Distributed Locks with Redis") with its drift
// spelled out.
#pragma once

#include "base/clock.h"
#include "base/error.h"

namespace rlock::lock {

inline constexpr milliseconds kDefaultLease = 30s;
inline constexpr milliseconds kShortestLease = 1s;
// A reader's lease is no longer than this, whatever is asked for: each renewal by a Java reader beside it sets the time
// of the whole lock to Redisson's lockWatchdogTimeout (RedissonReadLock, ReadLockTask), 30 s unless configured
// otherwise, and before 4.4.0 that of every reader. Where that is shorter, the lease has to be, too.
inline constexpr milliseconds kLongestReaderLease = 30s;
// Under this the two fixed margins are scaled down in proportion.
inline constexpr milliseconds kFullMarginLease = 5s;

// A margin as it counts for a lease of that length.
constexpr milliseconds scaled(milliseconds margin, milliseconds lease) {
  return lease >= kFullMarginLease ? margin : margin * lease.count() / kFullMarginLease.count();
}

// Offsets from s.
struct LeaseTiming {
  milliseconds lease{};
  milliseconds renew_at{};       // lease / 3
  milliseconds terminate_at{};   // SIGTERM
  milliseconds kill_at{};        // SIGKILL; the deadline
  milliseconds ends_at{};        // before that the server cannot have ended the lease, by the clocks above
  milliseconds clock_step{};     // how far the server's clock may step forward during one lease
  milliseconds retry_every{};    // after a renewal that failed
  milliseconds renew_timeout{};  // for one renewal, connecting included

  // `grace` is the time between SIGTERM and SIGKILL; `renewed`: the lease is to be renewed. Errors (usage): a lease
  // under kShortestLease; a grace that leaves no room for a retry before SIGTERM, or for the command at all.
  static Result<LeaseTiming> make(milliseconds lease, milliseconds grace, bool renewed = true);

  // min(5 s, lease / 6)
  static milliseconds default_grace(milliseconds lease);
};

// For how long the next renewal of a lease has been missing, if the last one was `ago`. 0: it is not, or not for longer
// than a renewal may take (LeaseTiming::renew_timeout, 500 ms at least): others look at a moment of their own.
milliseconds overdue_for(milliseconds lease, milliseconds ago);

}  // namespace rlock::lock
