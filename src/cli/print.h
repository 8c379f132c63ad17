// SPDX-License-Identifier: MIT
// Standard output, and files that rlock writes.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace rlock::cli {

// Writes to standard output. Errors (system): it is closed, full, or a pipe that nobody reads.
Result<void> print(std::string_view text);

// Writes `text` to a file: into a new file beside it, which then takes its place, so that nobody sees half of it. Links
// are followed, and stay. Pipes and devices, and all that is below /proc or in /dev, are written to as they are; a
// descriptor that rlock was started with, such as /dev/stdout, is written to where it stands. Errors: system.
Result<void> write_file(const std::string& path, std::string_view text);

}  // namespace rlock::cli
