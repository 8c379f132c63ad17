// SPDX-License-Identifier: MIT
// From argv to words, in one pass: which subcommand, which options with which texts. cli/invocation.h decides what the
// texts mean. Only parse.cc knows CLI11.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "options/option_table.h"

namespace rlock::cli {

struct Parsed {
  const SubcommandSpec* subcommand = nullptr;       // null: there is only `text` to print
  std::string text;                                 // help
  bool version = false;                             // the version is what to print
  std::map<std::string_view, Setting> options;      // those that are given, by their names
  std::vector<std::string> names;                   // positional arguments
  std::size_t names_in_front = 0;                   // of the option that is a command, where that is given
  std::optional<std::vector<std::string>> command;  // what stands after the first --, if there is one

  // Usage: an unknown option or subcommand, with the nearest known one; an option without its value or given twice; a
  // missing subcommand. `options` has what was seen all the same.
  std::optional<Error> error;
  // The line asks for `acquire --export`, as far as that can be told of one that is wrong: its caller evaluates what
  // rlock prints (show/shell.h), so that has to fail from the beginning.
  bool exports = false;

  // The text that was given for `option`; null: it was not.
  const std::string* text_of(const OptionSpec& option) const {
    const auto found = options.find(option.name());
    return found == options.end() ? nullptr : &found->second.text;
  }
};

Parsed parse(const std::vector<std::string>& arguments);

// "CLI11 2.3.2", as the version shows it.
std::string line_library();

}  // namespace rlock::cli
