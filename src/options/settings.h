// SPDX-License-Identifier: MIT
// Where an option's text comes from: the command line, else RLOCK_… in the environment, else the chosen profile of
// the configuration files, else what they say outside of profiles. Each time the user's file beats the host's.
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
  // Reads the configuration files: the one of --config or RLOCK_CONFIG, which must exist, or else the usual two
  // where they exist. Errors (config): those of TrustedFile and read_config; an address with a password in a file that
  // others may read; an unknown key, or one with a value of the wrong type; a profile that is in none of the files; a
  // variable that is empty. Profiles that are not chosen are checked, too.
  static Result<Settings> load(const Parsed& parsed);

  // The setting that counts for an option; null: there is none. Variables and files speak only for those that the table
  // calls settings: the lease of `acquire`, for one, must be chosen each time.
  const Setting* find(const OptionSpec& option) const;

  // The configuration files that were read, in the order of their rank.
  const std::vector<std::string>& files() const { return files_; }

  // The addresses in the configuration files that have a password, in the order of their rank; also those that another
  // address beats. Those of profiles that are not chosen are not among them.
  const std::vector<Setting>& addresses_with_password() const { return addresses_; }

  // By these a nested rlock finds the chosen profile and these addresses where this one has found them: the file, if it
  // is not one of the usual two and can be read again, and the profile, unless it is in a file that cannot.
  const std::optional<std::string>& config_for_command() const { return config_; }
  const std::optional<std::string>& profile_for_command() const { return profile_; }

 private:
  struct File;

  // A setting that is known stays: the sources are read in the order of their rank.
  void add(const OptionSpec& option, Setting setting);
  Result<void> add_variables();
  // Of one profile, or with "" of those outside of profiles.
  void add_entries(const File& file, std::string_view profile);
  Result<void> add_profile(std::span<const File> files);
  static std::unexpected<Error> no_such_profile(const Setting& said, std::span<const File> files);

  // `chosen`: by --config or RLOCK_CONFIG; then it has to exist.
  Result<std::vector<File>> read_files() const;
  Result<std::optional<File>> read_file(const std::string& path, bool chosen) const;

  std::map<std::string_view, Setting> known_;  // by the names of options
  int rank_ = 0;                               // of the source that is read
  std::vector<std::string> files_;
  std::vector<Setting> addresses_;
  std::optional<std::string> config_, profile_;
};

// One option for each setting that any subcommand has, in the order of the table.
const std::vector<const OptionSpec*>& all_settings();

// The content of `rlock config`: one for each setting of any subcommand, in the order of the table, and the passwords
// that count behind the address. `common`: what was read from `settings`. Errors (usage, config): a bad address.
Result<std::vector<ShownSetting>> shown_settings(const Settings& settings, const CommonOptions& common);

// Warns of variables that look like settings and are none: a misspelt one would leave its setting unset in silence.
void warn_of_unknown_variables();

// The environment for a command: ours without what may hold a password and without what an outer rlock said,
// and with `additions` (NAME=value).
std::vector<std::string> environment_without_secrets(std::vector<std::string> additions);

}  // namespace rlock::cli
