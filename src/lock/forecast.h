// SPDX-License-Identifier: MIT
// How long a waiter will probably wait. Pure.
#pragma once

#include "verbs/answers.h"

namespace rlock::lock {

// The span that `percent` of them do not exceed. REQUIRES: sorted, and not empty.
milliseconds quantile(std::span<const milliseconds> sorted, std::size_t percent);

// Judged by how long the last holds of the lock lasted.
struct Forecast {
  std::size_t holds = 0;             // how many it is based on, at least five
  milliseconds median{}, p90{};      // of these
  std::optional<milliseconds> wait;  // none: unknown
  bool longer = false;               // the present hold already lasts longer than all of these
};

// The forecast for a waiter that wants `taken` of `slots`, behind `holder` and `ahead` other waiters (none: unknown),
// each of whom takes one. A present hold is expected to last as long as the median of those that lasted longer than it
// has lasted so far. If there are several slots, their holds are expected to end at regular intervals. There is no
// forecast if too few holds are known, or for a read-write lock, whose readers share it.
std::optional<Forecast> forecast(const HolderView& holder, const std::optional<long long>& ahead, long long slots,
                                 int taken = 1);

// The forecast for a job that asks for the lock now. There is none if it would not have to wait, either.
std::optional<Forecast> forecast(const Status& status);

}  // namespace rlock::lock
