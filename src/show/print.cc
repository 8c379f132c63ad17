// SPDX-License-Identifier: MIT
#include "show/print.h"

#include <cstdio>

namespace rlock::cli {

Result<void> print(std::string_view text) { return print_data(inert(text)); }

Result<void> print_data(std::string_view data) {
  while (!data.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return std::unexpected(system_error("standard output"));
    data.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<int> print(std::string_view text, int status) {
  RLOCK_TRY(print(text));
  return status;
}

Result<bool> confirmed(const std::string& question) {
  if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
    return fail(Error::Code::usage, "there is no terminal to ask on; give --yes to skip the question");
  }
  std::fputs(inert(question + " [y/N] ").c_str(), stderr);
  std::string answer;
  for (int c; (c = std::getchar()) != EOF && c != '\n';) answer += static_cast<char>(c);
  return answer == "y" || answer == "Y" || answer == "yes";
}

HoldTexts hold_texts(const std::vector<lock::Hold>& holds) {
  const auto lines = [&](auto text) { return joined(holds, "\n", text); };
  HoldTexts texts{.names = lines([](const lock::Hold& hold) { return hold.name().text(); }),
                  .owners = lines([](const lock::Hold& hold) { return hold.owner.text(); }),
                  .tokens = lines(&lock::Hold::token),
                  .slots = lines([](const lock::Hold& hold) { return hold.slots.number_text(); }),
                  .resources = lines([](const lock::Hold& hold) { return hold.slots.resource_text(); })};
  for (std::string* text : {&texts.slots, &texts.resources}) {
    if (text->find_first_not_of('\n') == text->npos) text->clear();
  }
  const auto same = [&](const lock::Hold& hold) { return hold.owner == holds.front().owner; };
  if (std::ranges::all_of(holds, same)) texts.owners = holds.front().owner.text();
  return texts;
}

Result<void> begin_assignments() { return print("(exit " + std::to_string(kInternal) + ")"); }

Result<void> print_assignments(const std::vector<lock::Hold>& holds) {
  const HoldTexts texts = hold_texts(holds);
  return print_data(" ||\nexport RLOCK_NAME=" + shell_word(texts.names) + " RLOCK_OWNER=" + shell_word(texts.owners) +
                    " RLOCK_TOKEN=" + shell_word(texts.tokens) +
                    (texts.slots.empty() ? "" : " RLOCK_SLOT=" + shell_word(texts.slots)) +
                    (texts.resources.empty() ? "" : " RLOCK_RESOURCE=" + shell_word(texts.resources)) + "\n");
}

void print_failure(int status) { static_cast<void>(print(" || (exit " + std::to_string(status) + ")\n")); }

}  // namespace rlock::cli
