// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace rlock::cli {

// Whether these arguments ask for `acquire --export`, as far as that can be told of a line that may be wrong: its
// caller evaluates what rlock prints (show/shell.h), so that has to fail from the beginning.
bool export_wanted(const std::vector<std::string>& arguments);

}  // namespace rlock::cli
