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

class Settings {
 public:
  // Reads the configuration files: the one of --config or RLOCK_CONFIG, which must exist, or else the usual two
  // where they exist. Errors (config): those of TrustedFile; an address with a password in a file that others may
  // read; an unknown key; a variable that is empty.
  static Result<Settings> load(const Parsed& parsed);

  // The setting that counts for an option; null: there is none. Variables and files speak only for those that the table
  // calls settings: the lease of `acquire`, for one, must be chosen each time.
  const Setting* find(const OptionSpec& option) const;

  // The address in a configuration file, if it has a password; also where another address beats it.
  const std::optional<std::string>& address_with_password() const { return address_; }
  // That file, if it is not one of the usual two, and can be read again.
  const std::optional<std::string>& file_of_address() const { return file_; }

 private:
  // A setting that is known stays: the sources are read in the order of their rank.
  void add(const SubcommandSpec& subcommand, std::string_view name, Setting setting);
  Result<void> add_variables(const SubcommandSpec& subcommand);
  // `chosen`: by --config or RLOCK_CONFIG; then it has to exist.
  Result<void> add_file(const SubcommandSpec& subcommand, const std::string& path, bool chosen);
  struct File;
  static Result<std::optional<File>> read_file(const std::string& path, bool chosen);
  Result<void> add_pair(const SubcommandSpec& subcommand, const File& file, const std::string& name,
                        const std::string& value);

  std::map<const OptionSpec*, Setting> known_;
  int rank_ = 0;  // of the source that is read
  std::optional<std::string> address_, file_;
};

// Warns of variables that look like settings and are none: a misspelt one would leave its setting unset in silence.
void warn_of_unknown_variables();

// "kill-after" -> "RLOCK_KILL_AFTER"
std::string variable_of(std::string_view name);

}  // namespace rlock::cli
