// SPDX-License-Identifier: MIT
// The page of `status --html` and `history --html`: who holds and waits for which locks, and what happened to them.
//
// One file that needs nothing from elsewhere: it can be opened from a disk, sent by mail, or served. Its
// Content-Security-Policy allows only its own style and script, by their hashes (src/show/page/). The script filters by
// name; everything else, including the filter by time, works without it. Everything that came from a server is escaped.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/date.h"
#include "lock/history.h"
#include "verbs/answers.h"

namespace rlock::cli {

struct PageFacts {
  std::optional<std::vector<lock::Status>> locks;  // none: their present state is unknown
  std::vector<lock::PastHold> holds;               // newest first
  std::map<lock::LockName, lock::Totals> totals;
  bool only_failures = false;        // the holds are
  bool chosen = false;               // there may be other holds, besides older ones
  std::size_t refused = 0;           // number of locks whose present state the user may not read
  std::string about_holds;           // "the newest ones (use --limit for older ones)"; may be empty
  std::vector<std::string> remarks;  // about the servers; not yet escaped for HTML
  milliseconds now{};                // since 1970
  Zone zone = Zone::utc;
};

std::string page_text(const PageFacts& facts);

}  // namespace rlock::cli
