// SPDX-License-Identifier: MIT
#include "run/release.h"

#include "base/log.h"

namespace rlock::run {

void release_all(redis::Client& client, const Job& job) {
  for (const lock::Hold& hold : job.holds) {
    auto released = lock::release(client, hold, Until{}.at_most(job.exchange));
    if (!released) log::warning(released.error().message + "; the lease of the lock runs out");
  }
}

}  // namespace rlock::run
