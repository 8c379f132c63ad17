// SPDX-License-Identifier: MIT
// The pictures of one lock in a page (show/page.h), as SVG without style attributes, which a strict
// Content-Security-Policy forbids: lanes show who held the lock when, runs how long each of the last holds lasted. Both
// are aria-hidden, because a table has the same holds as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/date.h"
#include "show/history.h"

namespace rlock::cli::page {

// Escapes text for elements and quoted attributes.
std::string html(std::string_view text);

// A hold, past or present, as a picture shows it.
struct Bar {
  enum class Kind { fine, bad, present };
  Kind kind = Kind::fine;
  milliseconds asked{}, begin{}, end{};  // since 1970
  std::vector<int> slots{};              // of a semaphore, if they are known
  std::size_t row = 0;                   // the number of its row in the page; 0: none
  std::string label{};                   // who held it; not yet escaped for HTML, like the title
  std::string title{};
};

// A lane for each slot, or if slots are unknown, as many lanes as holds overlap. Holds that are too short to be told
// apart become a block with their number; so do those for which there is no lane. The last lane shows when somebody
// waited. `classes`: of the picture.
std::string lanes(const std::vector<Bar>& bars, const Span& span, Zone zone, std::string_view classes);

// The slots that have a lane in `lanes`, in order.
std::vector<int> slots_of(const std::vector<Bar>& bars);

inline constexpr std::size_t kMostRuns = 60;
// The last of these bars, oldest first, each as high as it lasted. REQUIRES: at least one bar, sorted by end.
std::string runs(const std::vector<Bar>& bars, Zone zone);

}  // namespace rlock::cli::page
