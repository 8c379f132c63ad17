// SPDX-License-Identifier: MIT
// Visits every state of a model, breadth first, so that the first violation that is found has the shortest trace.
#pragma once

#include <chrono>

#include "model.h"

namespace rlock::model {

struct Found {
  std::uint64_t states = 0, steps = 0;
  int depth = 0;
  bool complete = false;
  std::string complaint{};  // "": no violation
  std::vector<std::string> trace{};
};

// `most`: states; the search stops there.
Found search(Model& model, std::uint64_t most);

}  // namespace rlock::model
