// SPDX-License-Identifier: MIT
// The terminal: tables and lines that fit its screen.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

struct Screen {
  std::optional<std::size_t> width;  // in columns; none: lines can have any length
  std::size_t height = 24;
  bool colour = false;

  // Standard output. A terminal has a size, and colours unless NO_COLOR (no-color.org) is set or TERM is dumb.
  static Screen of_output();
};

enum class Style { none, heading, good, busy, bad };

// REQUIRES: escaped text.
std::string styled(std::string_view text, Style style, const Screen& screen);

struct Cell {
  std::string text;  // escaped
  Style style = Style::none;

  Cell(std::string text, Style style = Style::none) : text(std::move(text)), style(style) {}
  Cell(const char* text) : text(text) {}
};
using Row = std::vector<Cell>;

// A step of making a table fit: it changes the texts of a column, or cuts them, but not below `least`, if the columns
// up to the beginning of `last` are too wide. A column that has become empty is left out.
struct FitStep {
  std::size_t column, last, least = 0;
  std::string (*change)(const std::string& text) = nullptr;
};

// Rows in columns. The first rows determine how wide these are, and which steps are necessary.
class Table {
 public:
  // REQUIRES: `steps` outlive this object.
  explicit Table(const Screen& screen, std::span<const FitStep> steps = {}) : screen_(screen), steps_(steps) {}

  // A line for each row, inert. Cuts lines that do not fit, and ends them with "…".
  std::string lines(std::vector<Row> rows);

 private:
  const Screen screen_;
  const std::span<const FitStep> steps_;
  std::vector<FitStep> taken_;       // those that were necessary
  std::vector<std::size_t> widths_;  // empty: there were no rows yet
};

// A line with the cells of `row`, of which cell i takes at least widths[i] + 2 columns.
std::string line_of(const Row& row, const std::vector<std::size_t>& widths, const Screen& screen);

// Cuts each of the lines in the same way. REQUIRES: no styles in them.
std::string fitted(std::string_view lines, const Screen& screen);

// True if a shell has put us into the background of `terminal`, where writing or setting modes may stop us and disturbs
// others. False if it is not a terminal, or not that of our session.
bool in_background(int terminal);

}  // namespace rlock::cli
