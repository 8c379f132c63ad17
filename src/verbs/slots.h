// SPDX-License-Identifier: MIT
// Which slots of a semaphore an owner has (lua/part/pool.lua).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rlock::lock {

// The most slots that an owner may take (lua/layout/semaphore.lua).
inline constexpr int kMostTaken = 64;

struct Slots {
  std::vector<int> numbers;            // from 0; none: unknown, or it has none
  std::vector<std::string> resources;  // their names, in the same order, if all of them have one

  // Reads the numbers, with blanks in between; any other text is no number. `names` are those of all slots, in the
  // order of their numbers.
  static Slots read(std::string_view numbers, const std::vector<std::string>& names);

  // "0 2", "gpu0 gpu2"; "" if there are none.
  std::string number_text() const;
  std::string resource_text() const;
};

}  // namespace rlock::lock
