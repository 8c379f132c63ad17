// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"

namespace rlock {

// "2026-01-31T12:00:00Z": ISO 8601, UTC. "?" for what no calendar holds.
std::string date_text(milliseconds since_1970);
// "2026-01-31T12:00:00.123Z"
std::string precise_date_text(milliseconds since_1970);

// The time that a date, or a date and a time in UTC, names: "2026-01-31", "2026-01-31T12:00:00Z", "2026-01-31 12:00". In
// milliseconds since 1970. None: it is neither, or no calendar holds it.
std::optional<milliseconds> parse_date(const std::string& text);

// The wall clock, which may step: for people and logs only.
milliseconds since_1970();

}  // namespace rlock
