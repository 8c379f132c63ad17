// SPDX-License-Identifier: MIT
// status --watch: asks again every second, until a signal or a key ends it, or the reader is gone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "lock/verbs.h"

namespace rlock::cli {

struct Watched {
  // Asks the servers, until the descriptor `interrupt` becomes readable; -1: none.
  std::function<Result<std::vector<lock::Status>>(int interrupt)> look;
  // The text to print if there is no terminal.
  std::function<std::string(const std::vector<lock::Status>&)> shown;
  bool for_people = true;  // on a terminal, show a full-screen picture instead
  std::size_t names = 0;   // how many locks were named; 0: show all
};

// On a terminal, draws the picture every second; if standard input is a terminal, too, keys sort it, show one lock, and
// quit. Otherwise prints the answer whenever it has changed. Keeps trying while a server is unreachable. Errors: those
// of `look`, but `unavailable` only before the first success.
Result<int> watch(const Watched& watched);

}  // namespace rlock::cli
