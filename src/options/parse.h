// SPDX-License-Identifier: MIT
// From argv to words: which subcommand, which options with which texts. cli/invocation.h
// decides what the texts mean. Only parse.cc knows CLI11.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "options/option_table.h"

namespace rlock::cli {

struct Parsed {
  const SubcommandSpec* subcommand = nullptr;        // null: nothing but `text` to print
  std::string text;                                  // help
  bool version = false;                              // the version is what to print
  std::map<const OptionSpec*, std::string> options;  // those that are given, with their texts
  std::set<const OptionSpec*> by_former_name;        // those of them that are given by the name that they had before
  std::vector<std::string> names;                    // positional arguments
  std::size_t names_in_front = 0;                    // of the option that is a command, where that is given
  std::optional<std::vector<std::string>> command;   // what stands after the first --, if there is one

  // The text that was given for `option`; null: it was not.
  const std::string* text_of(const OptionSpec& option) const {
    const auto found = options.find(&option);
    return found == options.end() ? nullptr : &found->second;
  }
};

// Errors (usage): an unknown option or subcommand, with the nearest known one; an option without its value
// or given twice; a missing subcommand.
Result<Parsed> parse(const std::vector<std::string>& arguments);

// "CLI11 2.3.2", as the version shows it.
std::string line_library();

}  // namespace rlock::cli
