// SPDX-License-Identifier: MIT
#include "run/watchdog.h"

#include <algorithm>

namespace rlock::run {

Watchdog::Watchdog(const lock::LeaseTiming& timing, TimePoint sent)
    : timing_(timing), sent_(sent), next_renewal_(sent + timing.renew_at) {}

Watchdog::Answer Watchdog::succeeded(TimePoint sent, TimePoint now, milliseconds found) {
  if (now >= sent + timing_.terminate_at || now >= terminate_at()) {
    failed(now);
    return Answer::too_late;
  }
  // The server executed both renewals after we had sent them and this one before `now`: at least this much was left
  // by our clock.
  const milliseconds expected = timing_.lease - std::chrono::ceil<milliseconds>(now - sent_);
  clock_lead_ = std::max<milliseconds>(expected - found, 0ms);
  shortened_by_ = std::max<milliseconds>(clock_lead_ - timing_.clock_step, 0ms);
  sent_ = std::max(sent_, sent);
  const milliseconds usable = timing_.terminate_at - shortened_by_;
  if (usable < timing_.renew_timeout * 2) return Answer::clock_runs_off;
  next_renewal_ = sent_ + (shortened_by_ == 0ms ? timing_.renew_at : std::min(timing_.renew_at, usable / 2));
  return Answer::counts;
}

void Watchdog::failed(TimePoint now) { next_renewal_ = now + timing_.retry_every; }

}  // namespace rlock::run
