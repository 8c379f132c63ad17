// SPDX-License-Identifier: MIT
// Reads a configuration file in a subset of TOML, without tables. It does not know which settings exist;
// options/settings.h does.
#pragma once

#include "options/options.h"

namespace rlock::cli {

// One line `name = value`.
struct ConfigEntry {
  std::string name;
  bool is_list = false;  // an array of strings
  std::string text;  // the value as an option takes it: "true" or "false"; the elements of a list separated by spaces
  Source source;     // without its rank
};

// Reads the content `text` of the file `path`. Errors (config), which name the file and the line, but never show a
// value: invalid TOML or UTF-8; a table; a name that is there twice; a value of another type than those above.
Result<std::vector<ConfigEntry>> read_config(const std::string& path, std::string_view text);

}  // namespace rlock::cli
