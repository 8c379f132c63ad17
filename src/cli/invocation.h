// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "options/options.h"
#include "options/parse.h"

namespace rlock::cli {

// Makes sense of a command line, of the environment and of the configuration files. Starts the log as they ask.
// `arguments`: the line that `parsed` is, for a message that corrects it. Errors: usage, config; each names the option,
// variable or setting that it is about.
Result<Invocation> read_invocation(const Parsed& parsed, const std::vector<std::string>& arguments);

// The commit that this program was built from, "-dirty" if the files differed from it; empty if that is not known,
// as in a release's archive. src/cli/build_commit.cmake writes it at each build.
const char* build_commit();

}  // namespace rlock::cli
