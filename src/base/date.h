// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"

namespace rlock {

enum class Zone { utc, local };  // local: from TZ or /etc/localtime (tzset(3))

// ISO 8601: "2026-01-31T12:00:00Z", or "2026-01-31T13:00:00+01:00" in a local zone. "?" if no calendar has that time.
std::string date_text(milliseconds since_1970, Zone zone = Zone::utc);
// The offset of the zone from UTC at that time.
milliseconds ahead_of_utc(milliseconds since_1970, Zone zone);
// When a day starts in the local zone: 0 for today, 1 for yesterday.
milliseconds begin_of_day(int days_ago);
// "2026-01-31T12:00:00.123Z"
std::string precise_date_text(milliseconds since_1970);

// The time of a date, or of a date and a time: "2026-01-31", "2026-01-31 12:00", "2026-01-31T12:00:00Z",
// "2026-01-31T13:00:00+01:00"; in UTC if it has no offset. None if it is anything else, or no such day exists.
std::optional<milliseconds> parse_date(const std::string& text);

// The wall clock, only for people and logs, because it may step.
milliseconds since_1970();

}  // namespace rlock
