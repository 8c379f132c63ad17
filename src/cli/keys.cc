// SPDX-License-Identifier: MIT
#include "cli/keys.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace rlock::cli {

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
  std::string keys(bytes, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  for (const auto& [sequence, key] : {std::pair{"\033[A", "k"}, {"\033[B", "j"}, {"\033OA", "k"}, {"\033OB", "j"}}) {
    for (auto at = keys.find(sequence); at != std::string::npos; at = keys.find(sequence)) keys.replace(at, 3, key);
  }
  return keys;
}

}  // namespace rlock::cli
