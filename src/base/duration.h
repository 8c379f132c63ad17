// SPDX-License-Identifier: MIT
// Durations as people write and read them.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace rlock {

// "250ms", "30s", "5m", "2h", "1d", "1.5h"; a number without a unit is in seconds, as in timeout(1). Errors (usage):
// empty, negative, not a number, an unknown unit, more than 365 days.
Result<milliseconds> parse_duration(std::string_view text);

// The shortest exact form that parse_duration reads back: "30s", "1500ms", "5m".
std::string format_duration(milliseconds span);

// For people, in at most two units: "3m12s", "2h05m", "4d03h", "7s", "0.3s".
std::string rough_duration(milliseconds span);

}  // namespace rlock
