// SPDX-License-Identifier: MIT
// Writes the page of `status --html` and `history --html`, which have the same page because a reader asks both who
// holds a lock and what happened to it. They differ in which past holds they show.
#pragma once

#include <string>

#include "base/date.h"
#include "cli/look.h"
#include "lock/history.h"

namespace rlock::cli {

// How many past holds of each lock `status --html` shows: enough to see a change, and few enough for hundreds of locks.
inline constexpr std::size_t kHoldsOfEach = 100;

struct PageOptions {
  std::string file;  // "-": standard output
  Zone zone = Zone::utc;
  bool only_history = false;  // is enough, if the user has no right to the present state
};

// Shows the locks of the question, or if it names none, all that are held or have holds that the query wants.
// Errors: those of lock::read_history, look() and write_file().
Result<int> write_page(lock::Servers& servers, const Question& question, const lock::HistoryQuery& query,
                       const PageOptions& options);

}  // namespace rlock::cli
