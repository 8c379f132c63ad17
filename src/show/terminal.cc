// SPDX-License-Identifier: MIT
#include "show/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"

namespace rlock::cli {
namespace {

// Its cells, without the empty ones at the end, and the gaps between them.
Row with_gaps(const Row& row, const std::vector<std::size_t>& widths) {
  std::size_t cells = row.size();
  while (cells > 0 && row[cells - 1].text.empty()) --cells;
  Row parts;
  for (std::size_t i = 0; i < cells; ++i) {
    const std::size_t own = columns(row[i].text);
    parts.push_back(row[i]);
    const bool left_out = own == 0 && widths[i] == 0;
    if (i + 1 < cells && !left_out) parts.emplace_back(std::string(std::max(widths[i], own) + 2 - own, ' '));
  }
  return parts;
}

// The widest cell of each column.
std::vector<std::size_t> widths_of(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i].text));
  }
  return widths;
}

void take(const FitStep& step, std::vector<Row>& rows) {
  for (Row& row : rows) {
    if (step.column >= row.size()) continue;
    std::string& text = row[step.column].text;
    text = step.change ? step.change(text) : cut_to(text, step.least);
  }
}

// Takes the steps that are necessary on a screen of that width. Returns them, for later rows of the same table.
std::vector<FitStep> fit(std::vector<Row>& rows, std::span<const FitStep> steps, std::size_t width) {
  constexpr std::size_t kEnough = 12, kGap = 2;
  std::vector<FitStep> taken;
  for (FitStep step : steps) {
    const std::vector<std::size_t> widths = widths_of(rows);
    std::size_t all = std::min(widths[step.last], kEnough);
    for (std::size_t i = 0; i < step.last; ++i) all += widths[i] == 0 ? 0 : widths[i] + kGap;
    if (step.last + 1 < widths.size()) ++all;  // for the "…" in place of what follows
    if (all <= width) continue;
    const std::size_t now = widths[step.column];
    step.least = std::max(now - std::min(now, all - width), step.least);
    take(step, rows);
    taken.push_back(step);
  }
  return taken;
}

}  // namespace

Screen Screen::of_output() {
  Screen screen;
  if (!isatty(STDOUT_FILENO)) return screen;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    screen.width = size.ws_col;
    if (size.ws_row > 0) screen.height = size.ws_row;
  }
  const char *plain = std::getenv("NO_COLOR"), *terminal = std::getenv("TERM");
  screen.colour = (!plain || !*plain) && terminal && std::string_view(terminal) != "dumb";
  return screen;
}

std::string styled(std::string_view text, Style style, const Screen& screen) {
  constexpr std::string_view kCodes[] = {"", "1", "32", "33", "31"};  // by Style
  if (!screen.colour || style == Style::none || text.empty()) return std::string(text);
  return "\033[" + std::string(kCodes[static_cast<int>(style)]) + "m" + std::string(text) + "\033[0m";
}

std::string line_of(const Row& row, const std::vector<std::size_t>& widths, const Screen& screen) {
  const Row parts = with_gaps(row, widths);
  std::size_t whole = 0;
  for (const Cell& part : parts) whole += columns(part.text);
  std::size_t room = whole <= screen.width.value_or(whole) ? whole : *screen.width - 1;  // the last column is for "…"
  std::string line;
  for (const Cell& part : parts) {
    const std::size_t own = columns(part.text);
    if (own > room) return line + styled(cut_to(part.text + " ", room + 1), part.style, screen);
    line += styled(part.text, part.style, screen);
    room -= own;
  }
  return line;
}

std::string Table::lines(std::vector<Row> rows) {
  for (Row& row : rows) {
    for (Cell& cell : row) cell.text = inert(cell.text);
  }
  if (!widths_.empty()) {
    for (const FitStep& step : taken_) take(step, rows);
  } else {
    if (screen_.width) taken_ = fit(rows, steps_, *screen_.width);
    widths_ = widths_of(rows);
  }
  std::string text;
  for (const Row& row : rows) text += line_of(row, widths_, screen_) + "\n";
  return text;
}

std::string fitted(std::string_view lines, const Screen& screen) {
  const std::string whole = inert(lines);
  if (!screen.width) return whole;
  std::string out;
  for (const std::string& line : split(without_newline(whole), '\n')) out += cut_to(line, *screen.width) + "\n";
  return out;
}

bool in_background(int terminal) {
  const pid_t foreground = tcgetpgrp(terminal);
  return foreground != -1 && foreground != getpgrp();
}

}  // namespace rlock::cli
