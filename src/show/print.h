// SPDX-License-Identifier: MIT
// Writes to standard output, to files and for shells, and asks on the terminal.
#pragma once

#include "verbs/verbs.h"

namespace rlock::cli {

// Writes lines to standard output, inert (base/text.h). Errors (system): it is closed, full, or without a reader.
Result<void> print(std::string_view text);
// The same; returns `status` if it succeeds.
Result<int> print(std::string_view text, int status);
// The same for data that no byte of may change.
Result<void> print_data(std::string_view data);

// Asks on the terminal; returns whether the answer is yes. Errors (usage): there is no terminal, so give --yes.
Result<bool> confirmed(const std::string& question);

// One line for each hold, since no name contains a newline. `owners` has one line if all are the same.
struct HoldTexts {
  std::string names, owners, tokens;
  // The numbers and the resources of its slots, of semaphores; "" if no lock has them.
  std::string slots, resources;
};
HoldTexts hold_texts(const std::vector<lock::Hold>& holds);

// The output of `acquire --export`:
//     eval "$(rlock acquire … --export)" && ./deploy.sh
//
// `eval` of an empty text succeeds (POSIX), so the shell would take a crash of rlock for a grant. The text therefore
// starts with a failure, and only the grant makes it succeed:
//     (exit 70)                                     killed by SIGKILL, or crashed
//     (exit 70) || (exit 75)                        not acquired, with this status
//     (exit 70) || export RLOCK_NAME=deploy …       granted
// `set -e` ignores failures before the last ||.
//
// Prints the beginning. Must be called before anything else. Errors (system): the output cannot be written.
Result<void> begin_assignments();

// Each of these prints the end. REQUIRES: the beginning has been printed.
Result<void> print_assignments(const std::vector<lock::Hold>& holds);
// Ignores errors, because the beginning already fails. REQUIRES: `status` is not 0.
void print_failure(int status);

}  // namespace rlock::cli
