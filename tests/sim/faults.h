// SPDX-License-Identifier: MIT
// Which faults a world has: each kind or not, and how often, by the seed ("swarm testing").
#pragma once

#include <array>

#include "scheduler.h"

namespace rlock::sim {

class Faults {
 public:
  enum class Kind {
    // of a message or connection
    cut,         // the connection ends before it arrives
    lost_reply,  // it is executed, and the connection ends
    torn_reply,  // the same, after a part of the reply
    silence,     // the connection is dead without a sign
    delay,       // up to 40 s
    // of a process
    kill_guards,   // all of them, by kill -9
    stop_monitor,  // for a while; the frontend and the command go on
    stop_waiter,   // one that waits, for a while
    // of a server
    crash,
    crash_some,  // it comes back with an earlier state of its data
    crash_all,   // it comes back empty
    hang,
    forget_scripts,
    clock,  // it steps, within the model; and its rate differs
  };
  static constexpr std::size_t kKinds = 14;
  static constexpr std::array<const char*, kKinds> kNames = {"cut",
                                                             "lost reply",
                                                             "torn reply",
                                                             "silence",
                                                             "delay",
                                                             "kill",
                                                             "stop",
                                                             "stop of a waiter",
                                                             "crash",
                                                             "crash with a snapshot",
                                                             "crash without data",
                                                             "hang",
                                                             "SCRIPT FLUSH",
                                                             "clock"};

  explicit Faults(Random& random) : random_(random) {
    for (double& one : chances_) one = random.chance(0.5) ? 0.02 * static_cast<double>(1 + random.below(10)) / 10 : 0;
  }

  // Whether it happens now; once the faults are over, it does not.
  bool happens(Kind kind, double often = 1) {
    const double chance = over_ ? 0 : chances_[static_cast<std::size_t>(kind)] * often;
    if (chance == 0 || !random_.chance(chance)) return false;
    count(kind);
    return true;
  }
  bool has(Kind kind) const { return chances_[static_cast<std::size_t>(kind)] > 0; }
  void allow(Kind kind, bool allowed) {
    if (!allowed) chances_[static_cast<std::size_t>(kind)] = 0;
  }
  void count(Kind kind) {
    ++counts_[static_cast<std::size_t>(kind)];
    world->note(kNames[static_cast<std::size_t>(kind)], 0);
    world->say([&] { return std::string("FAULT: ") + kNames[static_cast<std::size_t>(kind)]; });
  }
  void end() { over_ = true; }
  const std::array<std::uint64_t, kKinds>& counts() const { return counts_; }

 private:
  Random& random_;
  std::array<double, kKinds> chances_{};
  std::array<std::uint64_t, kKinds> counts_{};
  bool over_ = false;
};

}  // namespace rlock::sim
