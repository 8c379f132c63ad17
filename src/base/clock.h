// SPDX-License-Identifier: MIT
// Clocks, and durations, dates and periods as people write and read them.
#pragma once

#include <time.h>

#include <chrono>
#include <optional>

#include "base/error.h"

namespace rlock {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

// The clock for leases, CLOCK_BOOTTIME: it never steps, and unlike CLOCK_MONOTONIC (std::chrono::steady_clock) it
// continues while the machine is suspended, as the lease on the server does.
struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  static time_point now() {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
  }
};

using TimePoint = BootClock::time_point;

// The time from `now` to `then`, rounded up so that a poll(2) of that length is no shorter; 0 if `then` has passed.
inline milliseconds until(TimePoint then, TimePoint now = BootClock::now()) {
  return then <= now ? 0ms : std::chrono::ceil<milliseconds>(then - now);
}

// The wall clock, only for people and logs, because it may step.
milliseconds since_1970();

// "250ms", "30s", "5m", "90min", "2h", "1d", "1.5h", "1h30m"; a number without a unit is in seconds, as in timeout(1).
// Errors (usage): anything else, such as units that do not get smaller; more than 365 days.
Result<milliseconds> parse_duration(std::string_view text);

// The shortest exact form that parse_duration reads back: "30s", "1500ms", "5m".
std::string format_duration(milliseconds span);

// For people, in at most two units: "3m12s", "2h05m", "4d03h", "7s", "0.3s".
std::string rough_duration(milliseconds span);

enum class Zone { utc, local };  // local: from TZ or /etc/localtime (tzset(3))

// ISO 8601: "2026-01-31T12:00:00Z", or "2026-01-31T13:00:00+01:00" in a local zone. "?" if no calendar has that time.
std::string date_text(milliseconds since_1970, Zone zone = Zone::utc);
// "2026-01-31T12:00:00.123Z"
std::string precise_date_text(milliseconds since_1970);

// The time of a date, or of a date and a time: "2026-01-31", "2026-01-31 12:00", "2026-01-31T12:00:00Z",
// "2026-01-31T13:00:00+01:00"; in UTC if it has no offset. None if it is anything else, or no such day exists.
std::optional<milliseconds> parse_date(const std::string& text);
// When a day starts in the local zone: 0 for today, 1 for yesterday.
milliseconds begin_of_day(int days_ago);

// The periods of a calendar in which something is to happen once.
struct Period {
  enum class Unit { part_of_day, day, week, month };
  Unit unit = Unit::day;
  milliseconds length{};  // part_of_day: of each part; it divides a day

  std::string text() const;  // "hour", "day", "week", "month", or a duration such as "15m"
  std::string now() const;   // "this hour", "today", "this week", "this month", or "in this period of 15m"
  bool operator==(const Period&) const = default;
};

// "hour", "day", "week" (from Monday on), "month", or whole minutes, at most a day, that divide a day evenly,
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
