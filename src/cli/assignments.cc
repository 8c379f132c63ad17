// SPDX-License-Identifier: MIT
#include "cli/assignments.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "base/text.h"
#include "cli/exit_status.h"
#include "cli/option_table.h"
#include "cli/output.h"

namespace rlock::cli {
namespace {

const std::string kBeginning = "(exit " + std::to_string(kInternal) + ")";
bool begun = false;

// Whether the word after this option is its value. None: nobody knows the option.
std::optional<bool> takes_next_word(std::string_view word, std::span<const OptionSpec> options) {
  const auto spec_of = [&](const std::string& name) -> const OptionSpec* {
    for (const auto known : {common_options(), informing_options(), options}) {
      const auto named = [&](const OptionSpec& spec) {
        return spec.names == name || spec.names.starts_with(name + ",") || spec.names.ends_with("," + name);
      };
      if (const auto spec = std::ranges::find_if(known, named); spec != known.end()) return &*spec;
    }
    return nullptr;
  };
  if (word.starts_with("--")) {
    const OptionSpec* spec = spec_of(std::string(word.substr(0, word.find('='))));
    if (!spec) return {};
    return !spec->value.empty() && word.find('=') == word.npos;
  }
  // Several letters in one word: the rest behind one that takes a value is the value.
  for (std::size_t i = 1; i < word.size(); ++i) {
    const OptionSpec* spec = spec_of({'-', word[i]});
    if (!spec) return {};
    if (!spec->value.empty()) return i + 1 == word.size();
  }
  return false;
}

}  // namespace

// The value of an option is no subcommand and no option. After an option that nobody knows any word may be either: a
// text that fails is printed once too often rather than once too little, as the line is refused anyway.
bool assignments_wanted(const std::vector<std::string>& arguments) {
  bool acquire = false, sure = true, assignments = false;
  std::span<const OptionSpec> options;
  for (auto word = arguments.begin(); word != arguments.end() && *word != "--"; ++word) {
    if (*word == "-h" || *word == "--help" || *word == "-V" || *word == "--version") return false;
    assignments = assignments || *word == "--export" || word->starts_with("--export=");
    if (!word->starts_with('-')) {
      const SubcommandSpec* subcommand = acquire ? nullptr : find_subcommand(*word);
      if (subcommand && subcommand->name == "acquire") {
        acquire = true;
        options = subcommand->options;
      } else if (!acquire && sure) {
        if (subcommand) return false;
        sure = false;
      }
      continue;
    }
    const auto value_follows = takes_next_word(*word, options);
    sure = sure && value_follows;
    if (sure && *value_follows && ++word == arguments.end()) break;
  }
  return acquire && assignments;
}

Result<void> begin_assignments() {
  begun = true;
  return print(kBeginning);
}

Result<void> print_assignments(const std::vector<lock::Hold>& holds) {
  if (!begun) RLOCK_TRY(begin_assignments());
  const HoldTexts texts = hold_texts(holds);
  return print(" ||\nexport RLOCK_NAME=" + shell_word(texts.names) + " RLOCK_OWNER=" + shell_word(texts.owners) +
               " RLOCK_TOKEN=" + shell_word(texts.tokens) + "\n");
}

void print_failure(int status) {
  const auto ignored = print((begun ? "" : kBeginning) + " || (exit " + std::to_string(status) + ")\n");
  static_cast<void>(ignored);
}

}  // namespace rlock::cli
