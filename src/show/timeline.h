// SPDX-License-Identifier: MIT
// The holds that are over as a picture: each a bar below a line of time, the time that the job waited in front of it.
// Everything that came from a server is escaped here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/date.h"
#include "show/table.h"
#include "lock/history.h"

namespace rlock::cli {

// From the first time that a job has waited or held to the last one, in milliseconds since 1970; at least a second. Nothing
// counts that is more than 30 days before the first end: what an entry says may be absurd, and would leave the others no
// room.
struct Span {
  milliseconds begin{}, end{};

  milliseconds length() const { return end - begin; }
};
Span span_of(const std::vector<lock::PastHold>& holds);

// When the job has begun to wait: the begin of its bars.
milliseconds asked_at(const lock::PastHold& hold);

// Those of each lock, the oldest first. Valid as long as the holds are.
using ByLock = std::map<lock::LockName, std::vector<const lock::PastHold*>>;
ByLock by_lock(const std::vector<lock::PastHold>& holds);

// For a screen of any width; 100 columns where it has none. A line for each hold. REQUIRES: at least one hold.
std::string timeline(const std::vector<lock::PastHold>& holds, const Screen& screen, Zone zone = Zone::utc);

}  // namespace rlock::cli
