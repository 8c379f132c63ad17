// SPDX-License-Identifier: MIT
#include "base/duration.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/text.h"

namespace rlock {
namespace {

constexpr milliseconds kLongest = std::chrono::days(365);

double unit_in_ms(std::string_view unit) {
  if (unit == "ms") return 1;
  if (unit == "s" || unit.empty()) return 1000;
  if (unit == "m") return 60e3;
  if (unit == "h") return 3600e3;
  if (unit == "d") return 86400e3;
  return 0;
}

}  // namespace

Result<milliseconds> parse_duration(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return fail(Error::Code::usage, in_quotes(text) + " is not a duration: " + std::string(why) +
                                        "; write a number with ms, s, m, h or d, such as 30s");
  };
  if (text.empty()) return bad("it is empty");
  if (text.front() == '-') return bad("it is negative");

  double number = 0;
  // Fixed notation only: 1e999 is a slip of the pen, not a duration.
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  const double unit = unit_in_ms({rest, static_cast<std::size_t>(text.data() + text.size() - rest)});
  if (error == std::errc::result_out_of_range) return bad("the number is too large");
  if (error != std::errc{} || !std::isfinite(number)) return bad("it does not begin with a number");
  if (unit == 0) return bad("the unit is unknown");
  if (number * unit > static_cast<double>(kLongest.count())) return bad("it is longer than 365 days");
  return milliseconds(std::llround(number * unit));
}

std::string format_duration(milliseconds span) {
  const auto ms = span.count();
  const auto in = [&](long long unit, const char* name) { return std::to_string(ms / unit) + name; };
  if (ms == 0) return "0s";
  if (ms % 86400000 == 0) return in(86400000, "d");
  if (ms % 3600000 == 0) return in(3600000, "h");
  if (ms % 60000 == 0) return in(60000, "m");
  if (ms % 1000 == 0) return in(1000, "s");
  return in(1, "ms");
}

std::string rough_duration(milliseconds span) {
  const long long ms = std::max<long long>(span.count(), 0), s = ms / 1000;
  char text[32];
  if (ms < 1000) {
    std::snprintf(text, sizeof text, "%.1fs", static_cast<double>(ms) / 1000);
  } else if (s < 60) {
    std::snprintf(text, sizeof text, "%llds", s);
  } else if (s < 3600) {
    std::snprintf(text, sizeof text, "%lldm%02llds", s / 60, s % 60);
  } else if (s < 86400) {
    std::snprintf(text, sizeof text, "%lldh%02lldm", s / 3600, s % 3600 / 60);
  } else {
    std::snprintf(text, sizeof text, "%lldd%02lldh", s / 86400, s % 86400 / 3600);
  }
  return text;
}

}  // namespace rlock
