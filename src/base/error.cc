// SPDX-License-Identifier: MIT
#include "base/error.h"

#include <cerrno>
#include <cstring>

namespace rlock {

std::string errno_text(int number) {
  return strerror(number);  // not in a buffer that all threads share: POSIX lets it be one, glibc 2.32 and musl have none
}

Error system_error(std::string_view context, int number) {
  return Error{Error::Code::system, std::string(context) + ": " + errno_text(number)};
}

Error system_error(std::string_view context) { return system_error(context, errno); }

}  // namespace rlock
