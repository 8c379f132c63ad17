// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

// "; did you mean 'X'?" with the candidate that is nearest to `word` by edit distance, if one is near.
std::string suggestion(std::string_view word, const std::vector<std::string_view>& candidates);
// The candidate itself; "": none is near.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace rlock::cli
