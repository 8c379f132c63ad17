// SPDX-License-Identifier: MIT
// The holds that are over, as people read them. Everything that came from a server is escaped here.
#pragma once

#include <string>
#include <vector>

#include "base/date.h"
#include "show/table.h"
#include "lock/history.h"

namespace rlock::cli {

// A line for each, in their order, under a heading.
std::string history_table(const std::vector<lock::PastHold>& holds, const Screen& screen, Zone zone = Zone::utc);

// The outcome of the job: "ok", "exit 3", "SIGKILL", "lost: why", "taken away by whom".
std::string result_text(const lock::PastHold& hold);

// "alice@ci-7"; "-" where nobody knows.
std::string holder_text(const lock::PastHold& hold);

}  // namespace rlock::cli
