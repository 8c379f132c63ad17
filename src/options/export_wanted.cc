// SPDX-License-Identifier: MIT
#include "options/export_wanted.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "options/option_table.h"

namespace rlock::cli {
namespace {

bool names(const OptionSpec& spec, std::string_view name) {
  const auto comma = spec.names.find(',');
  return name == spec.names ||
         (comma != spec.names.npos && (name == spec.names.substr(0, comma) || name == spec.names.substr(comma + 1)));
}

// The row of an option, by its letter or its long name. Null: nobody knows it. `subcommand` may be null.
const OptionSpec* find_option(std::string_view name, const SubcommandSpec* subcommand) {
  const auto find_in = [&](std::span<const OptionSpec> options) -> const OptionSpec* {
    const auto found = std::ranges::find_if(options, [&](const OptionSpec& spec) { return names(spec, name); });
    return found == options.end() ? nullptr : &*found;
  };
  for (const auto options : {common_options(), informing_options()}) {
    if (const OptionSpec* found = find_in(options)) return found;
  }
  if (!subcommand) return nullptr;
  for (const auto options : subcommand->parts) {
    if (const OptionSpec* found = find_in(options)) return found;
  }
  return nullptr;
}

// Whether the word after this option is its value. None: nobody knows the option.
std::optional<bool> is_followed_by_value(std::string_view word, const SubcommandSpec* subcommand) {
  if (word.starts_with("--")) {
    const OptionSpec* spec = find_option(word.substr(0, word.find('=')), subcommand);
    if (!spec) return {};
    return !spec->value.empty() && word.find('=') == word.npos;
  }
  // Several letters in one word: the rest behind one that takes a value is the value.
  for (std::size_t i = 1; i < word.size(); ++i) {
    const OptionSpec* spec = find_option(std::string{'-', word[i]}, subcommand);
    if (!spec) return {};
    if (!spec->value.empty()) return i + 1 == word.size();
  }
  return false;
}

bool asks_for_text(std::string_view word) {
  return std::ranges::any_of(informing_options(), [&](const OptionSpec& spec) { return names(spec, word); });
}

bool has_export(const SubcommandSpec& subcommand) {
  return std::ranges::any_of(subcommand.options(), [](const OptionSpec& row) { return &row == &export_option(); });
}

// Looks at a line word by word.
struct Scan {
  const SubcommandSpec* acquire = nullptr;
  bool sure = true;  // which words are options, and which their values
  bool wanted = false;

  // False: the line has another subcommand.
  bool see_word(std::string_view word) {
    if (acquire) return true;
    const SubcommandSpec* subcommand = find_subcommand(word);
    if (subcommand && has_export(*subcommand)) {
      acquire = subcommand;
      return true;
    }
    if (sure && subcommand) return false;
    sure = false;
    return true;
  }

  // True: the next word is its value.
  bool see_option(std::string_view word) {
    wanted = wanted || names(export_option(), word.substr(0, word.find('=')));
    const auto value_follows = is_followed_by_value(word, acquire);
    sure = sure && value_follows;
    return sure && *value_follows;
  }
};

}  // namespace

// The value of an option is no subcommand and no option. After an option that nobody knows any word may be either: a
// text that fails is printed once too often rather than once too little, as the line is refused anyway.
bool export_wanted(const std::vector<std::string>& arguments) {
  Scan scan;
  for (auto word = arguments.begin(); word != arguments.end() && *word != "--"; ++word) {
    if (asks_for_text(*word)) return false;
    if (!word->starts_with('-')) {
      if (!scan.see_word(*word)) return false;
    } else if (scan.see_option(*word) && ++word == arguments.end()) {
      break;
    }
  }
  return scan.acquire && scan.wanted;
}

}  // namespace rlock::cli
