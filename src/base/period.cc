// SPDX-License-Identifier: MIT
#include "base/period.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <optional>

#include "base/duration.h"
#include "base/text.h"

namespace rlock {
namespace {

constexpr milliseconds kMinute = std::chrono::minutes(1), kHour = std::chrono::hours(1), kDay = std::chrono::days(1);
constexpr const char* kZones = "/usr/share/zoneinfo/";

// libc takes a zone that it does not know for UTC, without saying so.
bool is_zone_file(const std::string& path) {
  std::array<char, 4> start{};
  std::ifstream file(path, std::ios::binary);
  return file.read(start.data(), start.size()) && std::string_view(start.data(), start.size()) == "TZif";
}

// Sets TZ, and restores it at the end.
class InZone {
 public:
  explicit InZone(const std::string& path) {
    if (const char* before = std::getenv("TZ")) before_ = before;
    set(path.c_str());
  }
  ~InZone() { set(before_ ? before_->c_str() : nullptr); }
  InZone(const InZone&) = delete;
  InZone& operator=(const InZone&) = delete;

 private:
  static void set(const char* zone) {
    zone ? setenv("TZ", zone, 1) : unsetenv("TZ");
    tzset();
  }

  std::optional<std::string> before_;
};

std::chrono::sys_days day_of(const std::tm& parts) {
  using namespace std::chrono;
  return year(parts.tm_year + 1900) / (parts.tm_mon + 1) / parts.tm_mday;
}

// As if the wall showed UTC.
milliseconds start_on_the_wall(const Period& period, const std::tm& parts) {
  const std::chrono::sys_days day = day_of(parts);
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

std::string Period::text() const {
  switch (unit) {
    case Unit::day: return "day";
    case Unit::week: return "week";
    case Unit::month: return "month";
    case Unit::part_of_day: break;
  }
  return length == kHour ? "hour" : format_duration(length);
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
                                        " is not a period: use hour, day, week, month, or a duration that divides a "
                                        "day, such as 15m or 6h");
  }
  return *length == kDay ? Period{Period::Unit::day, {}} : Period{Period::Unit::part_of_day, *length};
}

Result<long long> start_of_period(const Period& period, milliseconds since_1970, const std::string& zone) {
  const std::string path = zone == "UTC" ? "UTC0" : kZones + zone;
  if (zone != "UTC" && !is_zone_file(path)) {
    return fail(Error::Code::config, escaped(zone, 100) + ": this host has no such time zone in " + kZones +
                                         "; install tzdata, or correct the name");
  }
  const InZone in_zone(path);
  const std::time_t seconds = static_cast<std::time_t>(since_1970.count() / 1000);
  std::tm parts{};
  if (!localtime_r(&seconds, &parts)) return fail(Error::Code::config, "the server's time is not in any calendar");
  if (period.unit != Period::Unit::part_of_day || period.length > kHour) {
    return start_on_the_wall(period, parts).count();
  }
  const milliseconds offset = std::chrono::seconds(parts.tm_gmtoff);
  return ((since_1970 + offset) / period.length * period.length - offset).count();
}

Result<std::string> parse_zone(const std::string& text) {
  const bool odd =
      std::ranges::any_of(text, [](unsigned char c) { return !std::isalnum(c) && !std::strchr("/_+-", c); });
  if (!text.empty() && text.size() <= 64 && !odd && text.front() != '/') return text;
  return fail(Error::Code::usage, in_quotes(text) + " is not the name of a time zone, such as Europe/Berlin or UTC");
}

}  // namespace rlock
