// SPDX-License-Identifier: MIT
#include "base/date.h"

#include <ctime>

namespace rlock {

std::string date_text(milliseconds since_1970) {
  const std::time_t seconds = static_cast<std::time_t>(since_1970.count() / 1000);
  std::tm parts{};
  char text[32];
  if (!gmtime_r(&seconds, &parts) || !std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)) return "?";
  return text;
}

std::optional<milliseconds> parse_date(const std::string& text) {
  for (const char* form : {"%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%MZ",
                           "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"}) {
    std::tm parts{};
    const char* rest = strptime(text.c_str(), form, &parts);
    if (!rest || *rest != '\0') continue;
    const std::tm read = parts;
    const std::time_t seconds = timegm(&parts);
    // A 31st of February is no date.
    if (seconds < 0 || parts.tm_mday != read.tm_mday || parts.tm_mon != read.tm_mon) return {};
    return std::chrono::seconds(seconds);
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
