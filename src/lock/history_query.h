// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "lock/name.h"

namespace rlock::lock {

// The holds that are wanted out of histories.
struct HistoryQuery {
  std::vector<LockName> names;        // none: of all locks that have a history
  std::size_t limit = 50;             // holds at most
  std::optional<milliseconds> since;  // ended at that time or later, since 1970
  std::optional<milliseconds> within = {};  // ended no longer ago, by the clock of the server; overrules `since`
  bool failed = false;                // only those that are not PastHold::fine()
  bool of_each = false;               // the limit is that of each lock, not of all
};

// Reading them takes that many exchanges with the server at most.
inline constexpr int kLongestReading = 60;

}  // namespace rlock::lock
