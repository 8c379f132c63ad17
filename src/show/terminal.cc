// SPDX-License-Identifier: MIT
#include "show/terminal.h"

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

constexpr std::string_view kCodes[] = {"", "1", "32", "33", "31"};  // by Style

// Turns arrow keys into j and k, and drops all other escape sequences (ECMA-48 §5.4: ESC [ … up to a byte from @ to ~;
// xterm: ESC O and one byte). A single ESC is the key. Its branches are those of the sequences.
std::string keys_in(std::string_view bytes) {
  std::string keys;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const char next = bytes[at] == '\033' && at + 1 < bytes.size() ? bytes[at + 1] : '\0';
    if (next != '[' && next != 'O') {
      keys += bytes[at];
      continue;
    }
    at += 2;
    while (next == '[' && at < bytes.size() && (bytes[at] < '@' || bytes[at] > '~')) ++at;
    if (at < bytes.size() && bytes[at] == 'A') keys += 'k';
    if (at < bytes.size() && bytes[at] == 'B') keys += 'j';
  }
  return keys;
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
  return "\033[" + std::string(kCodes[static_cast<int>(style)]) + "m" + std::string(text) + "\033[0m";
}

std::string line_of(const Row& row, const std::vector<std::size_t>& widths, const Screen& screen) {
  // Ignore empty cells at the end.
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
  std::size_t room = *screen.width - 1;  // the last column is for "…"
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

bool in_background(int terminal) {
  const pid_t foreground = tcgetpgrp(terminal);
  return foreground != -1 && foreground != getpgrp();
}

Keys::Keys() : terminal_(isatty(STDIN_FILENO)) { take(); }

bool Keys::there() const { return terminal_ && tcgetpgrp(STDIN_FILENO) == getpgrp(); }

void Keys::take() {
  termios modes{};
  if (!there() || tcgetattr(STDIN_FILENO, &modes) != 0) return;
  // If line mode is off, these are our own modes, which a shell has restored after a stop.
  if (!former_ || (modes.c_lflag & ICANON) != 0) former_ = modes;
  modes.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  modes.c_cc[VMIN] = 0;
  modes.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &modes);
}

void Keys::give_back() const {
  if (former_ && there()) tcsetattr(STDIN_FILENO, TCSANOW, &*former_);
}

std::string Keys::pressed() {
  take();
  if (!there()) return "";
  char bytes[64];
  const ssize_t length = read(STDIN_FILENO, bytes, sizeof bytes);
  return keys_in({bytes, static_cast<std::size_t>(std::max<ssize_t>(length, 0))});
}

}  // namespace rlock::cli
