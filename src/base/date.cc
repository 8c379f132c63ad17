// SPDX-License-Identifier: MIT
#include "base/date.h"

#include <ctime>

namespace rlock {
namespace {

std::optional<std::tm> parts_of(milliseconds since_1970, Zone zone) {
  const std::time_t seconds = static_cast<std::time_t>(since_1970.count() / 1000);
  std::tm parts{};
  if (zone == Zone::local) tzset();  // localtime_r(3) need not call it
  if (!(zone == Zone::local ? localtime_r(&seconds, &parts) : gmtime_r(&seconds, &parts))) return {};
  return parts;
}

}  // namespace

std::string date_text(milliseconds since_1970, Zone zone) {
  const auto parts = parts_of(since_1970, zone);
  char text[32];
  if (!parts || !std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &*parts)) return "?";
  std::string date = text;
  if (parts->tm_gmtoff == 0) return date.replace(date.size() - 5, 5, "Z");
  return date.insert(date.size() - 2, ":");
}

milliseconds ahead_of_utc(milliseconds since_1970, Zone zone) {
  const auto parts = parts_of(since_1970, zone);
  return std::chrono::seconds(parts ? parts->tm_gmtoff : 0);
}

milliseconds begin_of_day(int days_ago) {
  std::tm day = parts_of(since_1970(), Zone::local).value_or(std::tm{});
  day.tm_hour = day.tm_min = day.tm_sec = 0;
  day.tm_mday -= days_ago;
  day.tm_isdst = -1;  // unknown
  return std::chrono::seconds(std::mktime(&day));
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

std::string precise_date_text(milliseconds since_1970) {
  std::string text = date_text(since_1970);
  if (!text.ends_with('Z')) return text;
  const std::string thousandths = std::to_string(1000 + since_1970.count() % 1000);
  return text.replace(text.size() - 1, 1, "." + thousandths.substr(1) + "Z");
}

milliseconds since_1970() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch());
}

}  // namespace rlock
