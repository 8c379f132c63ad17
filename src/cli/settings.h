// SPDX-License-Identifier: MIT
// Where an option's text comes from: the command line, else RLOCK_… in the environment, else the user's
// configuration file, else the host's.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "cli/parse.h"

namespace rlock::cli {

struct Setting {
  std::string text;
  std::string origin;  // "--lease", "RLOCK_LEASE", "/etc/rlock/rlock.toml: lease": in front of complaints
  bool on_command_line = false;
};

class Settings {
 public:
  // Reads the configuration files: the one of --config or RLOCK_CONFIG, which must exist, or else the usual two
  // where they exist. Errors (config): those of TrustedFile; an address with a password in a file that others may
  // read; an unknown key; a variable that is empty.
  static Result<Settings> load(const Parsed& parsed);

  // What was said about the option of that long name; none: nothing.
  std::optional<Setting> find(std::string_view name) const;

  // The address in a configuration file, if it has a password; also where another address beats it.
  const std::optional<std::string>& address_with_password() const { return address_; }
  // That file, if it is not one of the usual two, and can be read again.
  const std::optional<std::string>& file_of_address() const { return file_; }

 private:
  std::map<std::string, Setting, std::less<>> known_;
  std::optional<std::string> address_, file_;
};

// Warns of variables that look like settings and are none: a misspelt one would leave its setting unset in silence.
void warn_of_unknown_variables();

// "kill-after" -> "RLOCK_KILL_AFTER"
std::string variable_of(std::string_view name);

}  // namespace rlock::cli
