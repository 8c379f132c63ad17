// SPDX-License-Identifier: MIT
// When to renew, and all deadlines that follow from the last request with which the server kept the lock. Pure
// arithmetic: the time is an argument.
#pragma once

#include <algorithm>

#include "verbs/lease.h"

namespace rlock::run {

// The longest pause before processes that do not die are looked at again. Shorter for a short lease, whose deadline
// leaves the guards less time.
constexpr milliseconds longest_look(milliseconds lease) { return lock::scaled(milliseconds(100), lease); }

// What keeps the lock on the server.
struct Promise {
  TimePoint sent = TimePoint::max();  // just before the last successful request was sent; max() if there was none
  milliseconds shortened_by{};        // by how much deadlines are earlier, because the server's clock ran ahead
  bool operator==(const Promise&) const = default;
};

class Deadlines {
 public:
  Deadlines(const lock::LeaseTiming& timing, const Promise& promise) : timing_(timing), promise_(promise) {}

  // SIGTERM: the lock counts as lost.
  TimePoint terminate_at() const { return after(timing_.terminate_at - promise_.shortened_by); }
  // SIGKILL: the tree must be dead.
  TimePoint kill_at() const { return after(timing_.kill_at - promise_.shortened_by); }
  // The earliest time at which the server may end the lease.
  TimePoint ends_at() const { return after(timing_.ends_at - promise_.shortened_by); }
  // The latest time at which it ends if nobody renews or releases it. `min_hold`: see Job.
  TimePoint runs_out_at(milliseconds min_hold) const { return after(std::max(timing_.lease, min_hold)); }

  // When the frontend kills the tree if the monitor has not. The deadline leaves a second for the guards; the monitor
  // gets a quarter of it, because it can also release the lock. A monitor that is still killing (`last_killing`) is
  // alive and is left alone, because only it keeps the lock until the last process has died.
  TimePoint frontend_acts_at(TimePoint last_killing) const {
    const TimePoint from = std::max(kill_at(), last_killing + 2 * longest_look(timing_.lease));
    return from == TimePoint::max() ? from : from + lock::scaled(milliseconds(250), timing_.lease);
  }

 private:
  TimePoint after(milliseconds span) const {
    return promise_.sent == TimePoint::max() ? promise_.sent : promise_.sent + span;
  }

  lock::LeaseTiming timing_;
  Promise promise_;
};

class Watchdog {
 public:
  // `sent`: just before the successful acquire was sent.
  Watchdog(const lock::LeaseTiming& timing, TimePoint sent)
      : timing_(timing), promise_{sent, 0ms}, next_renewal_(sent + timing.renew_at) {}

  TimePoint next_renewal() const { return next_renewal_; }
  // The promise of the last renewal that counts, or of the acquire.
  const Promise& promise() const { return promise_; }
  Deadlines deadlines() const { return {timing_, promise_}; }

  enum class Answer {
    counts,
    too_late,        // what it promises has already passed, so nothing changes
    clock_runs_off,  // the server's clock is too fast to keep this lease
  };
  // Takes the success of a renewal that was sent at `sent` and answered at `now`. `found` is what was left of the lease
  // by the server's clock. This shows how far that clock ran ahead of ours since the last renewal, the `clock_lead`. A
  // lead beyond the step that every deadline allows for makes the next deadlines earlier, because it may happen again.
  Answer succeeded(TimePoint sent, TimePoint now, milliseconds found) {
    if (now >= sent + timing_.terminate_at || now >= deadlines().terminate_at()) {
      failed(now);
      return Answer::too_late;
    }
    // The server executed the last renewal after we had sent it, and this one before `now`. So by our clock, at least
    // this much of the lease was left.
    const milliseconds expected = timing_.lease - std::chrono::ceil<milliseconds>(now - promise_.sent);
    clock_lead_ = std::max<milliseconds>(expected - found, 0ms);
    const milliseconds shortened_by = std::max<milliseconds>(clock_lead_ - timing_.clock_step, 0ms);
    promise_ = {std::max(promise_.sent, sent), shortened_by};
    const milliseconds usable = timing_.terminate_at - shortened_by;
    if (usable < timing_.renew_timeout * 2) return Answer::clock_runs_off;
    next_renewal_ = promise_.sent + (shortened_by == 0ms ? timing_.renew_at : std::min(timing_.renew_at, usable / 2));
    return Answer::counts;
  }

  // How much the server's clock gained on ours between the last two renewals, at least; 0 if it did not. It looks
  // smaller if somebody else has renewed the lease, too.
  milliseconds clock_lead() const { return clock_lead_; }

  // For a quorum server that lacks the hold and may take it back: makes the next renewal due at once, then after 50,
  // 100, 200 ms …, but never later than without this. Call it after the grant and after each renewal that counts, until
  // the server has the hold; then call calm().
  void hurry(TimePoint now) {
    next_renewal_ = std::min(next_renewal_, now + pause_);
    pause_ = std::clamp<milliseconds>(pause_ * 2, 50ms, timing_.lease);
  }
  void calm() { pause_ = 0ms; }

  // A renewal failed, and it may or may not have been executed.
  void failed(TimePoint now) { next_renewal_ = now + timing_.retry_every; }

 private:
  lock::LeaseTiming timing_;
  Promise promise_;
  TimePoint next_renewal_;
  milliseconds pause_{};  // for the next hurry()
  milliseconds clock_lead_{};
};

}  // namespace rlock::run
