// SPDX-License-Identifier: MIT
#include "options/suggest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rlock::cli {
namespace {

// Levenshtein's distance, with one row of its table.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

}  // namespace

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  std::string_view found;
  std::size_t least = std::max<std::size_t>(word.size() / 3, 2) + 1;
  for (const std::string_view candidate : candidates) {
    // A word that was not finished is near to what it begins.
    const bool begun = candidate.starts_with(word) && word.size() > 2;
    const std::size_t longer = std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size());
    if (!begun && longer >= least) continue;
    const std::size_t d = begun ? 1 : distance(word, candidate);
    if (d < least) {
      least = d;
      found = candidate;
    }
  }
  return found;
}

std::string suggestion(std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::string_view found = nearest(word, candidates);
  return found.empty() ? "" : "; did you mean " + std::string(found) + "?";
}

}  // namespace rlock::cli
