// SPDX-License-Identifier: MIT
#include "verbs/lease.h"

#include <algorithm>

namespace rlock::lock {

milliseconds LeaseTiming::default_grace(milliseconds lease) { return std::min<milliseconds>(5s, lease / 6); }

Result<LeaseTiming> LeaseTiming::make(milliseconds lease, milliseconds grace, bool renewed) {
  if (lease < kShortestLease) {
    return fail(Error::Code::usage, "a lease of " + format_duration(lease) +
                                        " is too short to be kept safely; at least " + format_duration(kShortestLease));
  }
  constexpr milliseconds scheduling = 1s;

  LeaseTiming timing;
  timing.lease = lease;
  timing.clock_step = scaled(500ms, lease);
  timing.renew_at = lease / 3;
  timing.ends_at = lease * 99 / 100 - timing.clock_step;
  timing.kill_at = timing.ends_at - scaled(scheduling, lease);
  timing.terminate_at = timing.kill_at - grace;
  timing.retry_every = std::min<milliseconds>(1s, lease / 15);
  timing.renew_timeout = std::min<milliseconds>(5s, lease / 10);
  const milliseconds needed = renewed ? timing.renew_at + timing.renew_timeout : lease / 10;
  if (timing.terminate_at < needed) {
    return fail(Error::Code::usage, "a grace of " + format_duration(grace) + " leaves no time to " +
                                        (renewed ? "renew" : "use") + " a lease of " + format_duration(lease) +
                                        "; at most " + format_duration(timing.kill_at - needed));
  }
  return timing;
}

milliseconds overdue_for(milliseconds lease, milliseconds ago) {
  const milliseconds margin = std::clamp<milliseconds>(lease / 10, 500ms, 5s), missing = ago - lease / 3;
  return missing > margin ? missing : 0ms;
}

}  // namespace rlock::lock
