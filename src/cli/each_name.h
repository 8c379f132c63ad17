// SPDX-License-Identifier: MIT
#pragma once

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/exit_status.h"
#include "cli/server.h"
#include "lock/name.h"

namespace rlock::cli {

// Does something for each name, also if it has failed for another; then the last error is that of all, and the others
// have been reported.
template <class Action>
Result<int> for_each_name(const std::vector<lock::LockName>& names, Action action) {
  Result<int> all = kDone;
  for (const lock::LockName& name : names) {
    Result<void> done = action(name);
    if (done) continue;
    if (!all) log::error(with_advice(all.error()).message);
    all = std::unexpected(std::move(done).error());
  }
  return all;
}

}  // namespace rlock::cli
