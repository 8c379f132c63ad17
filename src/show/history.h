// SPDX-License-Identifier: MIT
// The holds that are over: a table, a timeline, a page of HTML; show/json.h has them for programs. Everything that came
// from a server is escaped here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/date.h"
#include "lock/history.h"
#include "show/terminal.h"

namespace rlock::cli {

// A line for each, in their order, under a heading.
std::string history_table(const std::vector<lock::PastHold>& holds, const Screen& screen, Zone zone = Zone::utc);

// Each as a bar below a line of time, with the time that its job waited in front of it. For a screen of any width; 100
// columns where it has none. REQUIRES: at least one hold.
std::string timeline(const std::vector<lock::PastHold>& holds, const Screen& screen, Zone zone = Zone::utc);

// A page of HTML: one file, without scripts, that needs nothing from the network. `older`: there are older ones.
std::string history_page(const std::vector<lock::PastHold>& holds, bool older, milliseconds now, Zone zone = Zone::utc);

// The parts of these:

// The outcome of the job: "ok", "exit 3", "SIGKILL", "lost: why", "taken away by whom".
std::string result_text(const lock::PastHold& hold);
// "alice@ci-7"; "-" where nobody knows.
std::string holder_text(const lock::PastHold& hold);
// "3m12s"; "-" where nobody knows.
std::string time_text(const std::optional<milliseconds>& time);

// From the first time that a job has waited or held to the last one, in milliseconds since 1970; at least a second.
// Nothing counts that is more than 30 days before the first end: what an entry says may be absurd, and would leave the
// others no room.
struct Span {
  milliseconds begin{}, end{};

  milliseconds length() const { return end - begin; }
  // Of the length that a time has behind it: 0 to 1.
  double part(milliseconds time) const;
};
Span span_of(const std::vector<lock::PastHold>& holds);

// When the job has begun to wait: the begin of its bars.
milliseconds asked_at(const lock::PastHold& hold);

// Those of each lock, the oldest first. Valid as long as the holds are.
using ByLock = std::map<lock::LockName, std::vector<const lock::PastHold*>>;
ByLock by_lock(const std::vector<lock::PastHold>& holds);

}  // namespace rlock::cli
