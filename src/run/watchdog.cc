// SPDX-License-Identifier: MIT
#include "run/watchdog.h"

#include <algorithm>

namespace rlock::run {
namespace {

constexpr milliseconds kFirstPause = 50ms;

}  // namespace

Watchdog::Watchdog(const lock::LeaseTiming& timing, TimePoint sent)
    : timing_(timing), promise_{sent, 0ms}, next_renewal_(sent + timing.renew_at) {}

Watchdog::Answer Watchdog::succeeded(TimePoint sent, TimePoint now, milliseconds found) {
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

void Watchdog::hurry(TimePoint now) {
  next_renewal_ = std::min(next_renewal_, now + pause_);
  pause_ = std::clamp<milliseconds>(pause_ * 2, kFirstPause, timing_.lease);
}

void Watchdog::failed(TimePoint now) { next_renewal_ = now + timing_.retry_every; }

}  // namespace rlock::run
