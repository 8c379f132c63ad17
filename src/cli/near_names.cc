// SPDX-License-Identifier: MIT
#include "cli/near_names.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "lock/listing.h"
#include "options/help.h"

namespace rlock::cli {
namespace {

constexpr milliseconds kLongestLook = 2s;
// Limits, because computing the distance of two words takes time in proportion to the product of their lengths.
constexpr std::size_t kShortest = 3, kLongest = 64, kMost = 20000;

}  // namespace

std::string near_name(lock::Servers& client, const lock::LockName& name, milliseconds exchange) {
  const std::string shown = name.display();
  if (shown.size() < kShortest || shown.size() > kLongest) return "";
  const auto known = lock::known_names(client, exchange, Until{}.at_most(std::min(2 * exchange, kLongestLook)));
  if (!known) return "";
  std::vector<std::string> names;
  for (const lock::LockName& one : *known) {
    // Skip names that could deceive the reader.
    if (names.size() >= kMost || one.text().size() > 2 * kLongest || !is_what_it_looks_like(one.text())) continue;
    names.push_back(one.text());
  }
  const std::string_view found = nearest(name.text(), {names.begin(), names.end()});
  return found.empty() ? "" : "; did you mean " + shell_word(found) + "?";
}

}  // namespace rlock::cli
