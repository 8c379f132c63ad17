// SPDX-License-Identifier: MIT
// When to renew, and until when the last renewal holds. Pure: time is given to it.
#pragma once

#include "base/clock.h"
#include "lock/lease.h"
#include "run/deadlines.h"

namespace rlock::run {

class Watchdog {
 public:
  // `sent`: just before the acquire that succeeded was sent.
  Watchdog(const lock::LeaseTiming& timing, TimePoint sent);

  TimePoint next_renewal() const { return next_renewal_; }
  // The promise of the last renewal that counts, or of the acquire.
  const Promise& promise() const { return promise_; }
  // The deadlines that follow from it.
  Deadlines deadlines() const { return {timing_, promise_}; }

  enum class Answer {
    counts,
    too_late,        // what it promises is over: nothing is brought back to life, and nothing changes
    clock_runs_off,  // the server's clock is too fast for this lease to be kept
  };
  // A renewal that was sent at `sent` was answered with success at `now`. `found` is what the server says was left of
  // the lease before it.
  //
  // That shows how far its clock ran ahead of ours since the last renewal: `clock_lead`. A lead beyond the step that
  // every deadline allows for shortens the next one, since it may happen again.
  Answer succeeded(TimePoint sent, TimePoint now, milliseconds found);

  // By how much the server's clock gained on ours between the last two renewals, at least; 0 where it did not: a
  // lease may be longer than we know, when somebody else renewed it, too.
  milliseconds clock_lead() const { return clock_lead_; }

  // A server of a quorum lacks the hold, and may take it: the next renewal is due at once, then after 50, 100, 200 ms
  // …, and never later than it would be. Called after the grant, and after each renewal that counts, as long as that is
  // so; calm(): it is not so any more.
  void hurry(TimePoint now);
  void calm() { pause_ = 0ms; }

  // A renewal failed in a way that leaves the outcome open.
  void failed(TimePoint now);

 private:
  lock::LeaseTiming timing_;
  Promise promise_;
  TimePoint next_renewal_;
  milliseconds pause_{};  // of hurry(), before the next one
  milliseconds clock_lead_{};
};

}  // namespace rlock::run
