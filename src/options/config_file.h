// SPDX-License-Identifier: MIT
// Reads a configuration file in a subset of TOML: settings, and settings by profile. It does not know which settings
// exist; options/settings.h does.
#pragma once

#include "options/options.h"

namespace rlock::cli {

// One line `name = value`, outside of tables or below [profile.NAME].
struct ConfigEntry {
  std::string profile;  // empty: outside of profiles
  std::string name;
  bool is_list = false;  // an array of strings
  std::string text;  // the value as an option takes it: "true" or "false"; the elements of a list separated by spaces
  Source source;     // without its rank
};

struct ConfigFile {
  std::vector<ConfigEntry> entries;   // each name at most once in a profile
  std::vector<std::string> profiles;  // sorted; also profiles without entries
};

// True for one or more letters, digits, - and _.
bool is_profile_name(std::string_view name);

// Reads the content `text` of the file `path`. Errors (config), which name the file and the line, but never show a
// value: invalid TOML or UTF-8; a table that is not a profile; an invalid name of a profile; a value of another type
// than those above.
Result<ConfigFile> read_config(const std::string& path, std::string_view text);

}  // namespace rlock::cli
