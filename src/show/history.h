// SPDX-License-Identifier: MIT
// Past holds as a table, which escapes everything that came from a server; show/json.h has them for programs and pages.
#pragma once

#include "lock/report.h"
#include "show/terminal.h"

namespace rlock::cli {

// A heading, and a line for each hold, in the given order. Prints a thousand at a time, of which the first thousand
// determine the columns.
class HistoryTable {
 public:
  HistoryTable(const Screen& screen, Zone zone, std::function<Result<void>(std::string_view)> print)
      : screen_(screen), zone_(zone), print_(std::move(print)) {}

  Result<void> add(const lock::PastHold& hold);
  // Prints what add() has not printed yet, and at first the heading.
  Result<void> end();

 private:
  const Screen screen_;
  const Zone zone_;
  std::function<Result<void>(std::string_view)> print_;
  std::vector<Row> rows_;            // not yet printed
  std::vector<std::size_t> widths_;  // of columns; empty: nothing has been printed
  std::vector<FitStep> fitting_;     // of rows on a narrow screen
};

// A line for each lock, and below, for whom others have waited: those of each lock that they waited for longest.
std::string report_text(const std::vector<lock::Report>& reports, const Screen& screen);

}  // namespace rlock::cli
