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

milliseconds since_1970() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch());
}

}  // namespace rlock
