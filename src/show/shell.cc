// SPDX-License-Identifier: MIT
#include "show/shell.h"

#include <algorithm>

#include "base/exit_status.h"
#include "base/text.h"
#include "show/print.h"

namespace rlock::cli {

HoldTexts hold_texts(const std::vector<lock::Hold>& holds) {
  HoldTexts texts;
  for (const lock::Hold& hold : holds) {
    const std::string end = texts.names.empty() ? "" : "\n";
    texts.names += end + hold.name().given();
    texts.owners += end + hold.owner.text();
    texts.tokens += end + hold.token;
    texts.slots += end + hold.slots.number_text();
    texts.resources += end + hold.slots.resource_text();
  }
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
  return print(" ||\nexport RLOCK_NAME=" + shell_word(texts.names) + " RLOCK_OWNER=" + shell_word(texts.owners) +
               " RLOCK_TOKEN=" + shell_word(texts.tokens) +
               (texts.slots.empty() ? "" : " RLOCK_SLOT=" + shell_word(texts.slots)) +
               (texts.resources.empty() ? "" : " RLOCK_RESOURCE=" + shell_word(texts.resources)) + "\n");
}

void print_failure(int status) { static_cast<void>(print(" || (exit " + std::to_string(status) + ")\n")); }

}  // namespace rlock::cli
