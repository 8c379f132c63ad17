// SPDX-License-Identifier: MIT
#include "cli/print.h"

#include <unistd.h>

#include <cerrno>

namespace rlock::cli {

Result<void> print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return std::unexpected(system_error("standard output"));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace rlock::cli
