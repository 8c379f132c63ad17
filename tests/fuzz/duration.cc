// SPDX-License-Identifier: MIT
// Durations: one that is read is never negative, and its shortest form is read as the same.
#include "base/clock.h"

#include "fuzz.h"

void fuzz(std::string_view bytes) {
  const auto duration = rlock::parse_duration(bytes);
  if (!duration) return check(!duration.error().message.empty());
  check(duration->count() >= 0);
  check(!rlock::rough_duration(*duration).empty());
  const auto again = rlock::parse_duration(rlock::format_duration(*duration));
  check(again && *again == *duration);
}
