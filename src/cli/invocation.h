// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "options/options.h"

namespace rlock::cli {

// Makes sense of the command line, the environment and the configuration files. Starts the log as they ask.
// Errors: usage, config; each names the option, variable or setting that it is about.
Result<Invocation> read_invocation(const std::vector<std::string>& arguments);

}  // namespace rlock::cli
