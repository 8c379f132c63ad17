// SPDX-License-Identifier: MIT
// Configuration files: a name at most once in a profile, and no value in a message.
#include <set>

#include "fuzz.h"
#include "options/config_file.h"

void fuzz(std::string_view bytes) {
  const auto file = rlock::cli::read_config("f", bytes);
  if (!file) return check(is_printable(file.error().message));
  std::set<std::pair<std::string, std::string>> names;
  for (const auto& entry : file->entries) {
    check(names.emplace(entry.profile, entry.name).second);
    check(entry.profile.empty() || std::ranges::binary_search(file->profiles, entry.profile));
  }
}
