// SPDX-License-Identifier: MIT
#include "base/error.h"

#include <cerrno>
#include <cstring>

namespace rlock {

std::string errno_text(int number) {
  const char* text = strerrordesc_np(number);
  return text ? text : "error " + std::to_string(number);
}

Error system_error(std::string_view context, int number) {
  return Error{Error::Code::system, std::string(context) + ": " + errno_text(number)};
}

Error system_error(std::string_view context) { return system_error(context, errno); }

}  // namespace rlock
