// SPDX-License-Identifier: MIT
#include "show/output_shell.h"

#include <algorithm>

#include "base/text.h"
#include "options/exit_status.h"
#include "show/print.h"

namespace rlock::cli {
namespace {

bool begun = false;

std::string beginning() { return "(exit " + std::to_string(kInternal) + ")"; }

}  // namespace

HoldTexts hold_texts(const std::vector<lock::Hold>& holds) {
  HoldTexts texts;
  for (const lock::Hold& hold : holds) {
    const std::string end = texts.names.empty() ? "" : "\n";
    texts.names += end + hold.name().given();
    texts.owners += end + hold.owner.text();
    texts.tokens += end + hold.token;
  }
  const auto same = [&](const lock::Hold& hold) { return hold.owner == holds.front().owner; };
  if (std::ranges::all_of(holds, same)) texts.owners = holds.front().owner.text();
  return texts;
}

Result<void> begin_assignments() {
  begun = true;
  return print(beginning());
}

Result<void> print_assignments(const std::vector<lock::Hold>& holds) {
  if (!begun) RLOCK_TRY(begin_assignments());
  const HoldTexts texts = hold_texts(holds);
  return print(" ||\nexport RLOCK_NAME=" + shell_word(texts.names) + " RLOCK_OWNER=" + shell_word(texts.owners) +
               " RLOCK_TOKEN=" + shell_word(texts.tokens) + "\n");
}

void print_failure(int status) {
  const auto ignored = print((begun ? "" : beginning()) + " || (exit " + std::to_string(status) + ")\n");
  static_cast<void>(ignored);
}

}  // namespace rlock::cli
