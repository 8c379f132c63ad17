// SPDX-License-Identifier: MIT
// Splits the command line into a subcommand, options with their texts, and other words; cli/commands.h interprets
// these. Only parse.cc knows CLI11.
#pragma once

#include "options/options.h"

namespace rlock::cli {

struct Parsed {
  const SubcommandSpec* subcommand = nullptr;       // null: just print `text`, or the version
  std::string text;                                 // help
  bool version = false;                             // print the version
  std::map<std::string_view, Setting> options;      // by name
  std::vector<std::string> names;                   // positional arguments
  std::size_t names_before_command = 0;             // how many precede the option that is a command, if that is given
  std::optional<std::vector<std::string>> command;  // the words after the first --, if there is one

  // Usage: an unknown option or subcommand, an option without its value or given twice, or a missing subcommand. Even
  // then, `options` has everything that was found.
  std::optional<Error> error;
  // The line asks for `acquire --export`, as far as a wrong line can tell. The caller evaluates what rlock prints
  // (show/print.h), so that must fail from its first byte on.
  bool exports = false;

  bool has(std::string_view option) const { return options.contains(option); }
  // Null if `option` was not given.
  const std::string* text_of(const OptionSpec& option) const {
    const auto found = options.find(option.name());
    return found == options.end() ? nullptr : &found->second.text;
  }
};

Parsed parse(const std::vector<std::string>& arguments);

// Sets the members that come from positional words: names of locks, a prefix, a command, the action of `rlock local`.
// Errors (usage): words that are missing, unexpected or repeated.
Result<void> read_words(Invocation& invocation, const Parsed& parsed);

// Checks the options against each other and sets the members that follow from them. Warns of likely mistakes.
// Errors (usage): options that cannot be used together.
Result<void> complete(Invocation& invocation, const Parsed& parsed);

// For --version: "CLI11 2.3.2".
std::string line_library();

}  // namespace rlock::cli
