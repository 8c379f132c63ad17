// SPDX-License-Identifier: MIT
// The terminal: tables and lines that fit its screen, and its keys, which a shell may take away from us and give back
// at any time.
#pragma once

#include <termios.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlock::cli {

struct Screen {
  std::optional<std::size_t> width;  // in columns; none: lines can have any length
  std::size_t height = 24;
  bool colour = false;
  bool unicode = true;  // can show block characters

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

// A line for each row, with its cells in columns. Cuts lines that do not fit, and ends them with "…".
std::string table(const std::vector<Row>& rows, const Screen& screen);

// One such line. Cell i takes at least widths[i] + 2 columns.
std::string line_of(const Row& row, const std::vector<std::size_t>& widths, const Screen& screen);

// Cuts each line of `text` in the same way. REQUIRES: no styles in `text`.
std::string fitted(std::string_view text, const Screen& screen);

// True if a shell has put us into the background of `terminal`, where writing or setting modes may stop us and disturbs
// others. False if it is not a terminal, or not that of our session.
bool in_background(int terminal);

// Reads standard input key by key, while it is a terminal with us in the foreground. The destructor restores its modes.
class Keys {
 public:
  Keys();
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;
  ~Keys() { give_back(); }

  // True if keys can be read now.
  bool there() const;

  // Turns off echo and line mode; Ctrl-C and Ctrl-Z remain signals. Call it again whenever a shell may have had the
  // terminal. Does nothing unless there().
  void take();

  // Restores the modes before a shell gets the terminal. Does nothing unless there().
  void give_back() const;

  // Calls take(), and returns the keys pressed since the last call, without waiting. The arrows up and down are k and
  // j.
  std::string pressed();

 private:
  const bool terminal_;
  std::optional<termios> former_;
};

}  // namespace rlock::cli
