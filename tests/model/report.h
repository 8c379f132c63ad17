// SPDX-License-Identifier: MIT
// Runs the searches of a model, on all processors, and prints what they find.
#pragma once

#include <chrono>
#include <cstdio>
#include <future>
#include <string>
#include <string_view>
#include <vector>

#include "search.h"

namespace rlock::model {

inline double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// What the command line of a model asks for.
struct Wanted {
  bool first = false;     // ends with the first violation
  std::string_view name;  // only the search of this name; "" for all

  // [--first] [NAME]
  Wanted(int count, char** words) {
    for (int i = 1; i < count; ++i) {
      const std::string_view word = words[i];
      first = first || word == "--first";
      if (word != "--first") name = word;
    }
  }
};

// Prints a line for one search, and the way to its violation.
inline void report(const std::string& name, const Found& found, double seconds) {
  std::printf("%s: %zu states, depth %zu, %.2f s%s\n%s", name.c_str(), found.states, found.depth, seconds,
              found.complete ? "" : ", NOT COMPLETE", found.violation.c_str());
  std::fflush(stdout);
}

// search(one) for each of `all`, two at a time, then prints the last line. Returns the exit status: 0, or 1 after a
// violation, or 2 if a search was not complete.
template <class One, class Name, class SearchOne>
int report_all(const Wanted& wanted, std::vector<One> all, const Name& name_of, const SearchOne& search,
               Found sum = {}) {
  int violations = sum.violation.empty() ? 0 : 1;
  if (!wanted.name.empty()) std::erase_if(all, [&](const One& one) { return name_of(one) != wanted.name; });
  const auto timed = [&search](const One& one) {
    const auto began = std::chrono::steady_clock::now();
    Found found = search(one);
    return std::pair{std::move(found), seconds_since(began)};
  };
  const auto take = [&](const One& one, const std::pair<Found, double>& result) {
    report(name_of(one), result.first, result.second);
    sum.states += result.first.states;
    sum.complete = sum.complete && result.first.complete;
    if (!result.first.violation.empty()) ++violations;
  };
  for (std::size_t i = 0; i < all.size() && !(wanted.first && violations > 0); i += 2) {
    std::future<std::pair<Found, double>> other;
    if (i + 1 < all.size()) other = std::async(std::launch::async, timed, all[i + 1]);
    take(all[i], timed(all[i]));
    if (other.valid()) take(all[i + 1], other.get());
  }
  std::printf("%zu states, %d violations\n", sum.states, violations);
  return violations > 0 ? 1 : sum.complete && !all.empty() ? 0 : 2;
}

}  // namespace rlock::model
