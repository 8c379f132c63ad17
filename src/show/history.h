// SPDX-License-Identifier: MIT
// Past holds as a table, which escapes everything that came from a server; show/json.h has them for programs and pages.
#pragma once

#include "lock/report.h"
#include "show/terminal.h"

namespace rlock::cli {

// A heading, and a line for each hold, in the given order. Makes a thousand lines at a time, of which the first
// thousand determine the columns.
class HistoryTable {
 public:
  HistoryTable(const Screen& screen, Zone zone);

  // Returns the lines that are to be printed now; "": none yet.
  std::string add(const lock::PastHold& hold);
  // Returns the lines that add() has not returned.
  std::string end();

 private:
  Table table_;
  const Zone zone_;
  std::vector<Row> rows_;  // not yet returned
};

// A line for each lock, and below, for whom others have waited: those of each lock that they waited for longest.
std::string report_text(const std::vector<lock::Report>& reports, const Screen& screen);

}  // namespace rlock::cli
