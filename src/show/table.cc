// SPDX-License-Identifier: MIT
#include "show/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/text.h"

namespace rlock::cli {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

bool says_utf8() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (!is_set(variable)) continue;
    std::string value = std::getenv(variable);
    std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
    return value.contains("utf-8") || value.contains("utf8");
  }
  return false;
}

constexpr std::string_view code_of(Style style) {
  switch (style) {
    case Style::none: return "";
    case Style::heading: return "1";
    case Style::good: return "32";
    case Style::busy: return "33";
    case Style::bad: return "31";
    case Style::dim: return "2";
  }
  return "";
}

}  // namespace

Screen Screen::of_output() {
  Screen screen;
  screen.unicode = says_utf8();
  if (!isatty(STDOUT_FILENO)) return screen;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    screen.width = size.ws_col;
    if (size.ws_row > 0) screen.height = size.ws_row;
  }
  const char* terminal = std::getenv("TERM");
  screen.colour = !is_set("NO_COLOR") && terminal && std::string_view(terminal) != "dumb";
  return screen;
}

std::string styled(std::string_view text, Style style, const Screen& screen) {
  if (!screen.colour || style == Style::none || text.empty()) return std::string(text);
  return "\033[" + std::string(code_of(style)) + "m" + std::string(text) + "\033[0m";
}

std::string line_of(const Row& row, const std::vector<std::size_t>& widths, const Screen& screen) {
  // Nothing is behind the last cell that has a text.
  std::size_t cells = row.size();
  while (cells > 0 && row[cells - 1].text.empty()) --cells;
  Row parts;
  std::size_t whole = 0;
  for (std::size_t i = 0; i < cells; ++i) {
    const std::size_t own = columns(row[i].text);
    const std::size_t gap = i + 1 == cells ? 0 : std::max(widths[i], own) + 2 - own;
    parts.push_back(row[i]);
    if (gap > 0) parts.emplace_back(std::string(gap, ' '));
    whole += own + gap;
  }
  std::string line;
  if (whole <= screen.width.value_or(whole)) {
    for (const Cell& part : parts) line += styled(part.text, part.style, screen);
    return line;
  }
  std::size_t room = *screen.width - 1;  // the last column says that there is more
  for (const Cell& part : parts) {
    const std::size_t own = columns(part.text);
    if (own > room) return line + styled(cut_to(part.text + " ", room + 1), part.style, screen);
    line += styled(part.text, part.style, screen);
    room -= own;
  }
  return line;
}

std::string table(const std::vector<Row>& rows, const Screen& screen) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns(row[i].text));
  }
  std::string text;
  for (const Row& row : rows) text += line_of(row, widths, screen) + "\n";
  return text;
}

std::string fitted(std::string_view text, const Screen& screen) {
  if (!screen.width) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += cut_to(text.substr(0, end), *screen.width) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace rlock::cli
