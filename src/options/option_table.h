// SPDX-License-Identifier: MIT
// Everything that can be on a command line. Help texts, the parser, variables and configuration files are all driven
// by this table; the man page, the completions and the README are tested against it.
#pragma once

#include <array>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/duration.h"
#include "base/error.h"
#include "options/options.h"

namespace rlock::cli {

// Help texts list options by group.
enum class Group { general, waiting, kind, supervision, hooks, common };

// A value, or a description in words; empty: there is no default.
using Default = std::variant<std::string_view, int, milliseconds>;

constexpr int kSetting = 1;  // also a variable RLOCK_NAME and, except for --config and --profile, a key in files
constexpr int kOften = 2;    // also in the short help of -h
constexpr int kPublic = 4;   // its text is shown to everybody, so it need not be hidden

struct OptionSpec {
  std::string_view names;  // "-w,--wait"; the long name without its dashes is the option's name
  std::string_view value;  // "DUR"; "text|json": one of these words; empty: a flag
  Fill fill = nullptr;     // null: parse() or Settings handles the option
  std::string_view help;
  int marks = 0;  // kSetting, kOften, kPublic
  Default fallback;
  std::string_view former;  // an earlier long name, without dashes; it still works, but no text mentions it
  Group group = Group::general;

  constexpr std::string_view name() const { return names.substr(names.find("--") + 2); }
  constexpr char letter() const { return names[1] == '-' ? '\0' : names[1]; }
  constexpr bool setting() const { return (marks & kSetting) != 0; }
  constexpr bool is_called(std::string_view word) const {
    return word == name() || (!former.empty() && word == former);
  }
  bool defaults_to_value() const { return !std::holds_alternative<std::string_view>(fallback); }
  // The default as help and `rlock config` show it.
  std::string default_text() const {
    if (const int* number = std::get_if<int>(&fallback)) return std::to_string(*number);
    if (const auto* span = std::get_if<milliseconds>(&fallback)) return format_duration(*span);
    return std::string(std::get<std::string_view>(fallback));
  }
  // True for commands, hooks and owner ids: their texts may be or contain secrets.
  bool may_be_secret() const { return (value == "ID" || value == "TEXT") && (marks & kPublic) == 0; }
};

struct SubcommandSpec {
  std::string_view name;
  std::string_view summary;                             // one line
  std::string_view synopsis;                            // what follows the options
  std::array<std::span<const OptionSpec>, 10> parts{};  // its own options, in the order of -h
  Invocation (*blank)(CommonOptions common) = nullptr;  // its options, with all other members at their defaults
  std::string_view notes = "";          // examples (indented) and exit statuses, shown after the options
  const OptionSpec* command = nullptr;  // the option whose text is a command, if the subcommand runs one
  std::string_view page = "rlock";      // the man page that describes it

  auto options() const { return parts | std::views::join; }
};

// In the order of the man page.
std::span<const SubcommandSpec> subcommands();
// Null if there is none of that name.
const SubcommandSpec* find_subcommand(std::string_view name);

// The options of all subcommands, which may also precede the subcommand.
std::span<const OptionSpec> common_options();
// --help, then --version.
std::span<const OptionSpec> informing_options();
// All options that are allowed with a subcommand, its own first; null: without one.
std::vector<const OptionSpec*> options_of(const SubcommandSpec* spec);

// Options that are needed before all options are read.
const OptionSpec& url_option();
const OptionSpec& config_option();
const OptionSpec& profile_option();
const OptionSpec& log_format_option();

}  // namespace rlock::cli
