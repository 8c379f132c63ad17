// SPDX-License-Identifier: MIT
// A terminal: tables and lines for its screen, which may be narrow and may know colours; its keys, which a shell may
// take away from us, and give back to us, at any time.
#pragma once

#include <termios.h>

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

  // Standard output: of a terminal its size, and colours unless NO_COLOR (no-color.org) is set or TERM is dumb.
  // Anything else has neither.
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

// A shell has job control over `terminal` and has not given it to us: to write there or to set modes may stop us, and
// disturbs others. False: also where it is no terminal, or not that of our session.
bool in_background(int terminal);

// Standard input, key by key, for as long as it is a terminal in whose foreground we are. It gets its former modes back
// in the end, unless somebody else has it then.
class Keys {
 public:
  Keys();
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;
  ~Keys() { give_back(); }

  // It can be read now.
  bool there() const;

  // From now on there is no echo, and each key can be read at once; Ctrl-C and Ctrl-Z stay signals. To be called again
  // whenever a shell may have had the terminal. Nothing happens unless there().
  void take();

  // The former modes, before a shell gets the terminal. Nothing happens unless there().
  void give_back() const;

  // Those that were pressed; an arrow is j or k. It takes the terminal first, and never waits.
  std::string pressed();

 private:
  const bool terminal_;
  std::optional<termios> former_;
};

}  // namespace rlock::cli
