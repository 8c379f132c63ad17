// SPDX-License-Identifier: MIT
#include "options/environment.h"

#include <unistd.h>

#include <algorithm>

namespace rlock::cli {
namespace {

constexpr std::string_view kSecretVariables[] = {"RLOCK_PASSWORD", "RLOCK_SENTINEL_PASSWORD", "REDISCLI_AUTH"};
constexpr std::string_view kOwnVariables[] = {"RLOCK_NAME", "RLOCK_OWNER",       "RLOCK_TOKEN", "RLOCK_HELD",
                                              "RLOCK_URL",  "RLOCK_EXIT_STATUS", "RLOCK_WHY"};

}  // namespace

bool is_own_variable(std::string_view name) {
  return std::ranges::find(kSecretVariables, name) != std::end(kSecretVariables) ||
         std::ranges::find(kOwnVariables, name) != std::end(kOwnVariables);
}

std::vector<std::string> environment_without_secrets(std::vector<std::string> additions) {
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    if (!is_own_variable(text.substr(0, text.find('=')))) additions.emplace_back(text);
  }
  return additions;
}

}  // namespace rlock::cli
