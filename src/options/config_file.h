// SPDX-License-Identifier: MIT
// A configuration file, a part of TOML: settings, and settings by profile. Whether there are such settings, and what
// their texts mean, is decided elsewhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "options/options.h"

namespace rlock::cli {

// One line `name = value`, outside of tables or below [profile.NAME].
struct ConfigEntry {
  enum class Type { text, flag, number, list };  // TOML's string, boolean and integer, and an array of strings

  std::string profile;  // empty: outside of tables
  std::string name;
  Type type = Type::text;
  std::string text;  // the value, as an option takes it: a flag's is "true" or "false"; a list's has blanks between
  Source source;     // but for its rank
};

struct ConfigFile {
  std::vector<ConfigEntry> entries;   // each name once a profile
  std::vector<std::string> profiles;  // by name; also those without entries
};

// Letters, digits, - and _, and one of them at least.
bool is_profile_name(std::string_view name);

// Reads `text`, which is in the file `path`. Errors (config): it is no TOML; a table that is no profile; a profile with
// another name than is_profile_name() allows; a value of another type than those above. Each names the file and the
// line, and shows no value.
Result<ConfigFile> read_config(const std::string& path, std::string_view text);

}  // namespace rlock::cli
