// SPDX-License-Identifier: MIT
#include "show/keys.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

namespace rlock::cli {
namespace {

// The keys that were typed: arrows as the letters that do the same, and nothing for other keys that are sent as sequences
// (ECMA-48 §5.4: ESC [ …, up to a byte from @ to ~; ESC O and one byte, as xterm has it). An ESC alone is the key.
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

bool in_background(int terminal) {
  const pid_t foreground = tcgetpgrp(terminal);
  return foreground != -1 && foreground != getpgrp();
}

Keys::Keys() : terminal_(isatty(STDIN_FILENO)) { take(); }

bool Keys::there() const { return terminal_ && tcgetpgrp(STDIN_FILENO) == getpgrp(); }

void Keys::take() {
  termios modes{};
  if (!there() || tcgetattr(STDIN_FILENO, &modes) != 0) return;
  // Modes without lines are ours: a shell has kept them for us over a stop.
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
