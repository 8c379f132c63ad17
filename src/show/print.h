// SPDX-License-Identifier: MIT
// Standard output.
#pragma once

#include <string_view>

#include "base/error.h"

namespace rlock::cli {

// Writes to standard output. Errors (system): it is closed, full, or a pipe that nobody reads.
Result<void> print(std::string_view text);

}  // namespace rlock::cli
