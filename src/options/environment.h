// SPDX-License-Identifier: MIT
// The variables of this process and of its command.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

// Whether rlock knows a variable that stands for no option: a password, or what it gives to commands.
bool is_own_variable(std::string_view name);

// The environment for a command: ours without what may hold a password and without what an outer rlock said,
// and with `additions` (NAME=value).
std::vector<std::string> environment_without_secrets(std::vector<std::string> additions);

}  // namespace rlock::cli
