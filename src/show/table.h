// SPDX-License-Identifier: MIT
// Tables and lines for people, on a screen that may be narrow and may know colours.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

// The place where a text is shown.
struct Screen {
  std::optional<std::size_t> width;  // columns; none: lines may be as long as they are
  std::size_t height = 24;
  bool colour = false;
  bool unicode = true;  // it can show bars of block characters

  // Standard output: of a terminal its size, and colours unless NO_COLOR (no-color.org) is set or TERM is dumb. Anything
  // else has neither.
  static Screen of_output();
};

enum class Style { none, heading, good, busy, bad, dim };

// `text` in that style. REQUIRES: escaped text.
std::string styled(std::string_view text, Style style, const Screen& screen);

struct Cell {
  std::string text;  // escaped
  Style style = Style::none;

  Cell(std::string text, Style style = Style::none) : text(std::move(text)), style(style) {}
  Cell(const char* text) : text(text) {}
};
using Row = std::vector<Cell>;

// The rows below each other, a line each, its cells in columns. The first one is the heading. A line that does not fit
// is cut, with "…" at its end.
std::string table(const std::vector<Row>& rows, const Screen& screen);

// The cells of one line, each in `widths[i]` columns at least and two more; cut as above.
std::string line_of(const Row& row, const std::vector<std::size_t>& widths, const Screen& screen);

// Each line of `text`, which is styled nowhere, cut as above.
std::string fitted(std::string_view text, const Screen& screen);

}  // namespace rlock::cli
