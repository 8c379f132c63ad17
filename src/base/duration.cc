// SPDX-License-Identifier: MIT
#include "base/duration.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "base/text.h"

namespace rlock {
namespace {

constexpr milliseconds kLongest = std::chrono::days(365);

struct Unit {
  std::string_view name;
  long long ms;
};
constexpr Unit kUnits[] = {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}};

}  // namespace

Result<milliseconds> parse_duration(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return fail(Error::Code::usage, in_quotes(text) + " is not a duration: " + std::string(why) +
                                        "; write a number with ms, s, m, h or d, such as 30s");
  };
  if (text.empty()) return bad("it is empty");
  if (text.front() == '-') return bad("it is negative");

  double number = 0;
  const char* end = text.data() + text.size();
  // Fixed notation only: 1e999 is a typing error, not a duration.
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const auto* unit = std::ranges::find(kUnits, rest == end ? "s" : std::string_view(rest, end), &Unit::name);
  if (error == std::errc::result_out_of_range) return bad("the number is too large");
  if (error != std::errc{} || !std::isfinite(number)) return bad("it does not begin with a number");
  if (unit == std::end(kUnits)) return bad("the unit is unknown");
  const double ms = number * static_cast<double>(unit->ms);
  if (ms > static_cast<double>(kLongest.count())) return bad("it is longer than 365 days");
  return milliseconds(std::llround(ms));
}

std::string format_duration(milliseconds span) {
  const auto ms = span.count();
  if (ms == 0) return "0s";
  const auto* unit = std::ranges::find_if(kUnits, [&](const Unit& one) { return ms % one.ms == 0; });
  return std::to_string(ms / unit->ms).append(unit->name);
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
