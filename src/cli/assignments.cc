// SPDX-License-Identifier: MIT
#include "cli/assignments.h"

#include <algorithm>
#include <span>

#include "base/text.h"
#include "cli/exit_status.h"
#include "cli/option_table.h"
#include "cli/output.h"

namespace rlock::cli {

bool assignments_wanted(const std::vector<std::string>& arguments) {
  const std::span<const std::string> words(arguments.begin(), std::ranges::find(arguments, "--"));
  const auto subcommand = std::ranges::find_if(words, [](const std::string& word) { return find_subcommand(word); });
  if (subcommand == words.end() || *subcommand != "acquire") return false;
  const auto has = [&](auto is) { return std::ranges::any_of(words, is); };
  const auto is_export = [](const std::string& word) { return word == "--export" || word.starts_with("--export="); };
  const auto is_text = [](const std::string& word) {
    return word == "-h" || word == "--help" || word == "-V" || word == "--version";
  };
  return has(is_export) && !has(is_text);
}

Result<void> begin_assignments() { return print("(exit " + std::to_string(kInternal) + ")"); }

Result<void> print_assignments(const std::vector<lock::Hold>& holds) {
  const HoldTexts texts = hold_texts(holds);
  return print(" ||\nexport RLOCK_NAME=" + shell_word(texts.names) + " RLOCK_OWNER=" + shell_word(texts.owners) +
               " RLOCK_TOKEN=" + shell_word(texts.tokens) + "\n");
}

void print_failure(int status) {
  const auto ignored = print(" || (exit " + std::to_string(status) + ")\n");
  static_cast<void>(ignored);
}

}  // namespace rlock::cli
