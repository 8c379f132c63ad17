// SPDX-License-Identifier: MIT
// The periods of a calendar in which something is to happen once.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace rlock {

struct Period {
  enum class Unit { part_of_day, day, week, month };
  Unit unit = Unit::day;
  milliseconds length{};  // part_of_day: of each part; it divides a day

  std::string text() const;  // "hour", "day", "week", "month", or a duration such as "15m"
  std::string now() const;   // "this hour", "today", "this week", "this month", or "in this period of 15m"
  bool operator==(const Period&) const = default;
};

// "hour", "day", "week" (from Monday on), "month", or a duration from one minute to one day that divides a day evenly,
// such as "15m"; "1h" is an hour, and "1d" a day. Errors (usage): anything else.
Result<Period> parse_period(std::string_view text);

// The start of the period that contains a time since 1970, by the calendar of a time zone: a number that is the same in
// the whole period, and grows from one period to the next. It is not a time: parts of a day of up to an hour are
// counted in UTC, so that an hour that the clocks repeat in autumn is two periods; everything longer is counted by what
// the clocks on the wall show. `zone`: a name such as "Europe/Berlin", or "UTC". Errors (config): this host does not
// know the zone. Not for several threads at a time, because it sets TZ for a moment (tzset(3)).
Result<long long> start_of_period(const Period& period, milliseconds since_1970, const std::string& zone);

// Errors (usage): the text cannot be the name of a time zone.
Result<std::string> parse_zone(const std::string& text);

}  // namespace rlock
