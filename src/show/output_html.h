// SPDX-License-Identifier: MIT
// The holds that are over as a page of HTML: one file, without scripts, that needs nothing from the network.
#pragma once

#include <string>
#include <vector>

#include "base/date.h"
#include "lock/history.h"

namespace rlock::cli {

// The page. `older`: there are older ones. Everything that came from a server is escaped.
std::string history_page(const std::vector<lock::PastHold>& holds, bool older, milliseconds now,
                         Zone zone = Zone::utc);

}  // namespace rlock::cli
