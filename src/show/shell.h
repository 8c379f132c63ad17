// SPDX-License-Identifier: MIT
// Holds as variables of a shell, and what a shell evaluates after `acquire --export`:
//     eval "$(rlock acquire … --export)" && ./deploy.sh
//
// The status of that is the status of the text, and that of an empty text is 0 (POSIX, eval): whatever keeps rlock from
// printing would pass for a lock. The text therefore fails from its first bytes on, whatever becomes of rlock, and only
// the grant makes it succeed:
//     (exit 70)                                     killed by SIGKILL, or crashed
//     (exit 70) || (exit 75)                        not acquired, and with which status
//     (exit 70) || export RLOCK_NAME=deploy …       granted
// `set -e` does not act on what stands before the last ||.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "lock/verbs.h"

namespace rlock::cli {

// Holds as variables tell them: a line for each, since no name holds a newline; one line if the owner is the same.
struct HoldTexts {
  std::string names, owners, tokens;
};
HoldTexts hold_texts(const std::vector<lock::Hold>& holds);

// The beginning, before anything else is done. Errors (system): it cannot be printed.
Result<void> begin_assignments();

// The end, one of the two. REQUIRES: the beginning is printed; without it a shell refuses what is printed here.
Result<void> print_assignments(const std::vector<lock::Hold>& holds);
// `status` is not 0. Text that cannot be printed is left out: the beginning fails as well.
void print_failure(int status);

}  // namespace rlock::cli
