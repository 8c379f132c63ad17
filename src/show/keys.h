// SPDX-License-Identifier: MIT
// The keys of a terminal that a shell may take away from us, and give back to us, at any time.
#pragma once

#include <termios.h>

#include <optional>
#include <string>

namespace rlock::cli {

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
