// SPDX-License-Identifier: MIT
// Past holds as a table or a timeline; show/page.h has them for browsers, show/json.h for programs. These functions
// escape everything that came from a server.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/date.h"
#include "lock/history.h"
#include "show/terminal.h"

namespace rlock::cli {

// A heading, and a line for each hold, in the given order.
std::string history_table(const std::vector<lock::PastHold>& holds, const Screen& screen, Zone zone = Zone::utc);

// Draws each hold as a bar below a time axis, preceded by the time that its job waited. Uses 100 columns if the screen
// has no width. REQUIRES: at least one hold.
std::string timeline(const std::vector<lock::PastHold>& holds, const Screen& screen, Zone zone = Zone::utc);

// The outcome of the job: "ok", "exit 3", "SIGKILL", "lost: why", "taken away by whom".
std::string result_text(const lock::PastHold& hold);
// "alice@ci-7"; "-" if unknown.
std::string holder_text(const lock::PastHold& hold);
// "3m12s"; "-" if unknown.
std::string time_text(const std::optional<milliseconds>& time);

struct Span {
  milliseconds begin{}, end{};  // since 1970

  milliseconds length() const { return end - begin; }
  // `time`, counted from `begin`, as a fraction of the length: 0 to 1.
  double part(milliseconds time) const;
};
// From the first wait or hold to the last end, at least a second. Starts no earlier than 30 days before the first end,
// so that an entry with an absurd time cannot squeeze the others.
Span span_of(const std::vector<const lock::PastHold*>& holds);
Span span_of(const std::vector<lock::PastHold>& holds);

// When the job began to wait, which is where its bars start.
milliseconds asked_at(const lock::PastHold& hold);

// The holds of each lock, oldest first. Valid as long as the holds are.
using ByLock = std::map<lock::LockName, std::vector<const lock::PastHold*>>;
ByLock by_lock(const std::vector<lock::PastHold>& holds);

}  // namespace rlock::cli
