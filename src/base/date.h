// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"

namespace rlock {

enum class Zone { utc, local };  // local: as TZ or /etc/localtime has it (tzset(3))

// "2026-01-31T12:00:00Z": ISO 8601, UTC; in another zone "2026-01-31T13:00:00+01:00". "?" for what no calendar holds.
std::string date_text(milliseconds since_1970, Zone zone = Zone::utc);
// How far that zone is ahead of UTC at that time.
milliseconds ahead_of_utc(milliseconds since_1970, Zone zone);
// The time at which that day of the local zone begins: 0 for today, 1 for yesterday.
milliseconds begin_of_day(int days_ago);
// "2026-01-31T12:00:00.123Z"
std::string precise_date_text(milliseconds since_1970);

// The time that a date, or a date and a time, names, in UTC unless it says how far it is ahead: "2026-01-31",
// "2026-01-31T12:00:00Z", "2026-01-31 12:00", "2026-01-31T13:00:00+01:00". In milliseconds since 1970. None: it is
// neither, or no calendar holds it.
std::optional<milliseconds> parse_date(const std::string& text);

// The wall clock, which may step: for people and logs only.
milliseconds since_1970();

}  // namespace rlock
