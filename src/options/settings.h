// SPDX-License-Identifier: MIT
// Where the text of an option comes from, in order of precedence: the command line, a variable RLOCK_…, the user's
// configuration file, and the host's.
#pragma once

#include "options/parse.h"

namespace rlock::cli {

class Settings {
 public:
  // Reads the file of --config or RLOCK_CONFIG, which must exist, or else the usual two files, if they exist.
  // Errors (config): those of TrustedFile and read_config; an address with a password in a file that others may read;
  // an unknown key, or a value of the wrong type; an empty variable.
  static Result<Settings> load(const Parsed& parsed);

  // The effective setting of an option, or null. Variables and files only count for options that the table marks as
  // settings; the lease of `acquire`, for example, must be given each time.
  const Setting* find(const OptionSpec& option) const;

  // The configuration files that were read, in order of precedence.
  std::vector<std::string> files;

  // The addresses with a password in the configuration files, in order of precedence, including those that another
  // address overrides.
  std::vector<ConfiguredUrl> addresses_with_password;

  // What a nested rlock needs to find these addresses: the file, if it is not one of the usual two and can be read
  // again.
  std::optional<std::string> config_for_command;

 private:
  Result<void> add_variables();
  // `said`: by --config or RLOCK_CONFIG, so the file must exist; null: it need not.
  Result<void> add_file(const std::string& path, const Setting* said);
  // Must be called in order of precedence: it keeps a setting that is already known.
  void add(const OptionSpec& option, Setting setting);

  std::map<std::string_view, Setting> known_;  // by the option's name
  int rank_ = 0;                               // of the source being read
};

// One option for each setting of any subcommand, in the order of the table.
const std::vector<const OptionSpec*>& all_settings();

// Warns of variables that look like settings but are not, because a misspelt one would be ignored silently.
void warn_of_unknown_variables();

// The environment for a command: ours without variables that may contain a password or that an outer rlock set, and
// with `additions` (NAME=value).
std::vector<std::string> environment_without_secrets(std::vector<std::string> additions);

}  // namespace rlock::cli
