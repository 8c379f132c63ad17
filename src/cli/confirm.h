// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "base/error.h"

namespace rlock::cli {

// Asks on the terminal (standard input and standard error) and reads a line: true if it is yes.
// Errors (usage): there is no terminal to ask on; says that --yes is wanted.
Result<bool> confirm(const std::string& question);

}  // namespace rlock::cli
