// SPDX-License-Identifier: MIT
// Takes the place of src/base/log.cc: messages are a part of the trace, and wait for nobody.
#include "base/log.h"

#include <cstdio>
#include <cstdlib>

#include "scheduler.h"

namespace rlock::log {

void write(Level, std::string_view message, const About&) {
  if (!sim::world) return;
  if (message.contains("it is not known whether")) sim::world->process().unsure = true;
  sim::world->say([&] { return "says: " + std::string(message); });
}

void notice(std::string_view message) { write(Level::debug, message); }

void die(std::string_view message) {
  std::printf("VIOLATION: rlock dies: %.*s\n", static_cast<int>(message.size()), message.data());
  std::fflush(stdout);
  std::_Exit(1);
}

// For what the floors above use, but no world needs.
void to_syslog() {}
void hold_for_full_screen() {}
void say_held() {}
bool somebody_draws() { return false; }
void say_again(std::string_view) {}
[[noreturn]] void die_without_memory() { std::abort(); }

}  // namespace rlock::log
