// SPDX-License-Identifier: MIT
#include "base/clock.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>

#include "base/text.h"

namespace rlock {
namespace {

constexpr milliseconds kMinute = 1min, kHour = 1h, kDay = std::chrono::days(1), kLongest = 365 * kDay;

struct Unit {
  std::string_view name, others;  // `others`: with a blank after each
  long long ms;
};
constexpr Unit kUnits[] = {{"d", "day days ", 86'400'000},
                           {"h", "hr hrs hour hours ", 3'600'000},
                           {"m", "min mins minute minutes ", 60'000},
                           {"s", "sec secs second seconds ", 1000},
                           {"ms", "msec millis ", 1}};

bool is_called(const Unit& unit, std::string_view word) {
  const auto at = unit.others.find(std::string(word) + " ");
  return word == unit.name || (at != unit.others.npos && (at == 0 || unit.others[at - 1] == ' '));
}

std::optional<std::tm> parts_of(milliseconds since_1970, Zone zone) {
  const std::time_t seconds = static_cast<std::time_t>(since_1970.count() / 1000);
  std::tm parts{};
  if (zone == Zone::local) tzset();  // localtime_r(3) need not call it
  if (!(zone == Zone::local ? localtime_r(&seconds, &parts) : gmtime_r(&seconds, &parts))) return {};
  return parts;
}

// The same in another zone, which must be a value for TZ.
std::optional<std::tm> parts_in(const std::string& zone, milliseconds since_1970) {
  const auto set = [](const char* to) {
    to ? setenv("TZ", to, 1) : unsetenv("TZ");
    tzset();
  };
  const char* own = std::getenv("TZ");
  const std::string before = own ? own : "";
  set(zone.c_str());
  const auto parts = parts_of(since_1970, Zone::local);
  set(own ? before.c_str() : nullptr);
  return parts;
}

// libc takes a zone that it does not know for UTC, without saying so.
bool is_zone_file(const std::string& path) {
  std::array<char, 4> start{};
  std::ifstream file(path, std::ios::binary);
  return file.read(start.data(), start.size()) && std::string_view(start.data(), start.size()) == "TZif";
}

// Where TZDIR (tzset(3)) or this system keeps them.
std::string folder_of_zones() {
  const char* named = std::getenv("TZDIR");
  return named && *named == '/' ? named : "/usr/share/zoneinfo";
}

// As if the wall showed UTC.
milliseconds start_on_the_wall(const Period& period, const std::tm& parts) {
  const std::chrono::sys_days day = std::chrono::year(parts.tm_year + 1900) / (parts.tm_mon + 1) / parts.tm_mday;
  const milliseconds midnight = day.time_since_epoch();
  switch (period.unit) {
    case Period::Unit::day: return midnight;
    case Period::Unit::week: return midnight - std::chrono::days((parts.tm_wday + 6) % 7);
    case Period::Unit::month: return midnight - std::chrono::days(parts.tm_mday - 1);
    case Period::Unit::part_of_day: break;
  }
  const milliseconds passed = std::chrono::hours(parts.tm_hour) + std::chrono::minutes(parts.tm_min);
  return midnight + passed / period.length * period.length;
}

}  // namespace

milliseconds since_1970() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch());
}

Result<milliseconds> parse_duration(std::string_view text) {
  const auto bad = fail(Error::Code::usage, in_quotes(text) +
                                                " is not a duration of at most 365 days; write a number with ms, s, "
                                                "m, h or d, such as 30s or 1h30m");
  if (text.empty()) return bad;
  double ms = 0;
  const auto* least = std::begin(kUnits);
  for (std::string_view rest = text; !rest.empty();) {
    double number = 0;
    // Fixed notation only: 1e999 is a typing error, not a duration.
    const auto [after, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), number, std::chars_format::fixed);
    if (error != std::errc{} || !std::isfinite(number) || rest.starts_with('-')) return bad;
    const bool alone = rest.size() == text.size();
    rest.remove_prefix(static_cast<std::size_t>(after - rest.data()));
    const std::string_view word = rest.substr(0, rest.find_first_of("0123456789.-"));
    rest.remove_prefix(word.size());
    const auto* unit = std::find_if(
        least, std::end(kUnits), [&](const Unit& one) { return is_called(one, alone && word.empty() ? "s" : word); });
    if (unit == std::end(kUnits)) return bad;
    least = unit + 1;
    ms += number * static_cast<double>(unit->ms);
    if (ms > static_cast<double>(kLongest.count())) return bad;
  }
  return milliseconds(std::llround(ms));
}

std::string format_duration(milliseconds span) {
  const auto ms = span.count();
  if (ms == 0) return "0s";
  const auto* unit = std::ranges::find_if(kUnits, [&](const Unit& one) { return ms % one.ms == 0; });
  return std::to_string(ms / unit->ms).append(unit->name);
}

std::string rough_duration(milliseconds span) {
  const long long ms = std::max<long long>(span.count(), 0);
  char text[64];
  if (ms < 1000) {
    std::snprintf(text, sizeof text, "%.1fs", static_cast<double>(ms) / 1000);
  } else if (ms < 60'000) {
    std::snprintf(text, sizeof text, "%llds", ms / 1000);
  } else {
    const auto* unit = std::ranges::find_if(kUnits, [&](const Unit& one) { return ms >= one.ms; });
    std::snprintf(text, sizeof text, "%lld%s%02lld%s", ms / unit->ms, unit->name.data(), ms % unit->ms / unit[1].ms,
                  unit[1].name.data());
  }
  return text;
}

std::string date_text(milliseconds since_1970, Zone zone) {
  const auto parts = parts_of(since_1970, zone);
  char text[32];
  if (!parts || !std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &*parts)) return "?";
  std::string date = text;
  if (parts->tm_gmtoff == 0) return date.replace(date.size() - 5, 5, "Z");
  return date.insert(date.size() - 2, ":");
}

std::string precise_date_text(milliseconds since_1970) {
  std::string text = date_text(since_1970);
  if (!text.ends_with('Z')) return text;
  const std::string thousandths = std::to_string(1000 + since_1970.count() % 1000);
  return text.replace(text.size() - 1, 1, "." + thousandths.substr(1) + "Z");
}

std::optional<milliseconds> parse_date(const std::string& text) {
  for (const char* date : {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
    for (const char* zone : {"", "Z", "%z"}) {
      const std::string form = std::string(date) + zone;
      std::tm parts{};
      const char* rest = strptime(text.c_str(), form.c_str(), &parts);
      if (!rest || *rest != '\0') continue;
      const std::tm read = parts;
      const std::time_t seconds = timegm(&parts) - read.tm_gmtoff;
      // There is no 31 February.
      if (seconds < 0 || parts.tm_mday != read.tm_mday || parts.tm_mon != read.tm_mon) return {};
      return std::chrono::seconds(seconds);
    }
  }
  return {};
}

milliseconds begin_of_day(int days_ago) {
  std::tm day = parts_of(since_1970(), Zone::local).value_or(std::tm{});
  day.tm_hour = day.tm_min = day.tm_sec = 0;
  day.tm_mday -= days_ago;
  day.tm_isdst = -1;  // unknown
  return std::chrono::seconds(std::mktime(&day));
}

std::string Period::text() const {
  if (unit == Unit::part_of_day) return length == kHour ? "hour" : format_duration(length);
  return unit == Unit::day ? "day" : unit == Unit::week ? "week" : "month";
}

std::string Period::now() const {
  if (unit == Unit::day) return "today";
  return (unit == Unit::part_of_day && length != kHour ? "in this period of " : "this ") + text();
}

Result<Period> parse_period(std::string_view text) {
  if (text == "hour") return Period{Period::Unit::part_of_day, kHour};
  for (const Period::Unit unit : {Period::Unit::day, Period::Unit::week, Period::Unit::month}) {
    const Period period{unit, {}};
    if (text == period.text()) return period;
  }
  const auto length = parse_duration(text);
  if (!length || *length < kMinute || *length % kMinute != 0ms || kDay % *length != 0ms) {
    return fail(Error::Code::usage, in_quotes(text) +
                                        " is not a period: use hour, day, week, month, or whole minutes that divide "
                                        "a day, such as 15m or 6h");
  }
  return *length == kDay ? Period{} : Period{Period::Unit::part_of_day, *length};
}

Result<long long> start_of_period(const Period& period, milliseconds since_1970, const std::string& zone) {
  const std::string folder = folder_of_zones(), path = zone == "UTC" ? "UTC0" : folder + "/" + zone;
  if (zone != "UTC" && !is_zone_file(path)) {
    return fail(Error::Code::config, escaped(zone, 100) + ": this host has no such time zone in " + escaped(folder) +
                                         "; install tzdata, correct the name, or set TZDIR to its folder");
  }
  const auto parts = parts_in(path, since_1970);
  if (!parts) return fail(Error::Code::config, "the server's time is not in any calendar");
  if (period.unit != Period::Unit::part_of_day || period.length > kHour) {
    return start_on_the_wall(period, *parts).count();
  }
  const milliseconds offset = std::chrono::seconds(parts->tm_gmtoff);
  return ((since_1970 + offset) / period.length * period.length - offset).count();
}

Result<std::string> parse_zone(const std::string& text) {
  const bool odd =
      std::ranges::any_of(text, [](unsigned char c) { return !std::isalnum(c) && !std::strchr("/_+-", c); });
  if (!text.empty() && text.size() <= 64 && !odd && text.front() != '/') return text;
  return fail(Error::Code::usage, in_quotes(text) + " is not the name of a time zone, such as Europe/Berlin or UTC");
}

}  // namespace rlock
