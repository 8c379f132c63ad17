// SPDX-License-Identifier: MIT
// What can stand on a command line: the one place that knows it. Help texts, the reading of options,
// variables and configuration files all come from here; man page, completions and README are tested against it.
#pragma once

#include <span>
#include <string_view>

namespace rlock::cli {

// What an option is about: help texts list them in this order.
enum class Group { general, waiting, kind, supervision, hooks, common };

struct OptionSpec {
  std::string_view names;  // "-w,--wait"; the long one without its dashes is the option's name
  std::string_view value;  // "DUR"; empty: a flag
  std::string_view help;
  Group group = Group::general;
  // Also a setting: RLOCK_NAME in the environment, `name` in a configuration file.
  bool setting = false;
  bool often = false;  // used by many: in the short help of -h, too

  std::string_view name() const { return names.substr(names.find("--") + 2); }
};

struct SubcommandSpec {
  std::string_view name;
  std::string_view summary;   // one line
  std::string_view synopsis;  // what comes after the options
  std::span<const OptionSpec> options;
  std::string_view notes;      // examples (indented) and exit statuses, below the options
  bool takes_command = false;  // everything after -- is a command
};

// In the order of the man page.
std::span<const SubcommandSpec> subcommands();
// The one of that name, or null.
const SubcommandSpec* find_subcommand(std::string_view name);

// Those that every subcommand takes, and that may stand before it.
std::span<const OptionSpec> common_options();
// Those that only ask for a text, everywhere: help and version.
std::span<const OptionSpec> informing_options();

}  // namespace rlock::cli
