// SPDX-License-Identifier: MIT
// status --watch: the same question again and again, until a signal or a key ends it, or nobody reads any more.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "lock/verbs.h"

namespace rlock::cli {

struct Watched {
  // Asks the server. `interrupt`: a descriptor that ends that when it becomes readable; -1: none.
  std::function<Result<std::vector<lock::Status>>(int interrupt)> look;
  // The answer as it is printed where there is no terminal.
  std::function<std::string(const std::vector<lock::Status>&)> shown;
  bool for_people = true;  // a terminal gets a picture instead of that
  std::size_t names = 0;   // how many locks were named; 0: all are looked at
};

// On a terminal the picture is drawn anew each second; if standard input is that terminal, too, keys sort it, show one
// lock, and end it. Elsewhere the answer is printed when it has changed. A server that is away for a while is waited
// for. Errors: those of `look`, before it has succeeded once, and later ones that are not `unavailable`.
Result<int> watch(const Watched& watched);

}  // namespace rlock::cli
