// SPDX-License-Identifier: MIT
// What past holds say about waiting: how long jobs waited and held, and for whose holds. Pure.
#pragma once

#include "lock/history.h"

namespace rlock::lock {

// Of spans of time.
struct Spread {
  milliseconds median{}, p95{}, total{};

  // None: there are no spans.
  static std::optional<Spread> of(std::vector<milliseconds> spans);
};

// For whom others have waited.
struct Cause {
  HolderInfo who;             // user, host and command; the rest is that of one of the holds
  std::size_t holds = 0;      // that somebody waited for
  milliseconds waited_for{};  // by all others together
};

struct Report {
  LockName name;
  std::size_t runs = 0, failed = 0;
  std::optional<Spread> waited, held;
  int held_percent = 0;           // of the time between the first grant and the last end; with several holders, any
  std::size_t longest_queue = 0;  // of those that got the lock
  std::vector<Cause> causes;      // the longest first
};

// One report for each lock, in the order of their names. A job that waited while several others held the lock counts as
// waiting for each of them. Jobs that gave up waiting are in no history.
std::vector<Report> report_on(std::vector<PastHold> holds);

}  // namespace rlock::lock
