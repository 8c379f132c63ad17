// SPDX-License-Identifier: MIT
// Where the text of an option comes from, in order of precedence: the command line, a variable RLOCK_…, the chosen
// profile in the configuration files, and their settings outside of profiles. In each case the user's file comes before
// the host's.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "options/parse.h"

namespace rlock::cli {

class Settings {
 public:
  // Reads the file of --config or RLOCK_CONFIG, which must exist, or else the usual two files, if they exist.
  // Errors (config): those of TrustedFile and read_config; an address with a password in a file that others may read;
  // an unknown key, or a value of the wrong type, also in profiles that are not chosen; an unknown profile; an empty
  // variable.
  static Result<Settings> load(const Parsed& parsed);

  // The effective setting of an option, or null. Variables and files only count for options that the table marks as
  // settings; the lease of `acquire`, for example, must be given each time.
  const Setting* find(const OptionSpec& option) const;

  // The configuration files that were read, in order of precedence.
  const std::vector<std::string>& files() const { return files_; }

  // The addresses with a password in the configuration files, in order of precedence, including those that another
  // address overrides, but not those in profiles that are not chosen.
  const std::vector<Setting>& addresses_with_password() const { return addresses_; }

  // What a nested rlock needs to find the chosen profile and these addresses: the file, if it is not one of the usual
  // two and can be read again, and the profile, unless its file cannot be read again.
  const std::optional<std::string>& config_for_command() const { return config_; }
  const std::optional<std::string>& profile_for_command() const { return profile_; }

 private:
  struct File;

  // Must be called in order of precedence: it keeps a setting that is already known.
  void add(const OptionSpec& option, Setting setting);
  Result<void> add_variables();
  // `profile` is empty for the settings outside of profiles.
  void add_entries(const File& file, std::string_view profile);
  Result<void> add_profile(std::span<const File> files);
  static std::unexpected<Error> no_such_profile(const Setting& said, std::span<const File> files);

  // `chosen`: named by --config or RLOCK_CONFIG, so it must exist.
  Result<std::vector<File>> read_files() const;
  Result<std::optional<File>> read_file(const std::string& path, bool chosen) const;

  std::map<std::string_view, Setting> known_;  // by the option's name
  int rank_ = 0;                               // of the source being read
  std::vector<std::string> files_;
  std::vector<Setting> addresses_;
  std::optional<std::string> config_, profile_;
};

// One option for each setting of any subcommand, in the order of the table.
const std::vector<const OptionSpec*>& all_settings();

// The content of `rlock config`: the settings of all subcommands, in the order of the table, with the effective
// passwords after the address. `common` must come from `settings`. Errors (usage, config): an invalid address.
Result<std::vector<ShownSetting>> shown_settings(const Settings& settings, const CommonOptions& common);

// Warns of variables that look like settings but are not, because a misspelt one would be ignored silently.
void warn_of_unknown_variables();

// The environment for a command: ours without variables that may contain a password or that an outer rlock set, and
// with `additions` (NAME=value).
std::vector<std::string> environment_without_secrets(std::vector<std::string> additions);

}  // namespace rlock::cli
