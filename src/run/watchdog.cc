// SPDX-License-Identifier: MIT
#include "run/watchdog.h"

#include <algorithm>

namespace rlock::run {

Watchdog::Watchdog(const lock::LeaseTiming& timing, TimePoint sent)
    : timing_(timing), sent_(sent), next_renewal_(sent + timing.renew_at) {}

bool Watchdog::succeeded(TimePoint sent, TimePoint now) {
  if (now >= sent + timing_.terminate_at || now >= terminate_at()) {
    failed(now);
    return false;
  }
  sent_ = std::max(sent_, sent);
  next_renewal_ = sent_ + timing_.renew_at;
  return true;
}

void Watchdog::failed(TimePoint now) { next_renewal_ = now + timing_.retry_every; }

}  // namespace rlock::run
