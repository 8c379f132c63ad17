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
    part,        // a client and a server hear nothing of each other for a while, or one of them not of the other
    // of a process
    kill_guards,   // all of them, by kill -9
    stop_monitor,  // for a while; the frontend and the command go on
    stop_waiter,   // one that waits, for a while
    stop_all,      // the guards and the command
    // of a server
    crash,
    crash_some,  // it comes back with an earlier state of its data
    crash_all,   // it comes back empty
    hang,
    forget_scripts,
    clock,  // it steps, within the model; and its rate differs
  };
  static constexpr std::size_t kKinds = 16;
  static constexpr std::array<const char*, kKinds> kNames = {"cut",
                                                             "lost reply",
                                                             "torn reply",
                                                             "silence",
                                                             "delay",
                                                             "partition",
                                                             "kill -9",
                                                             "stop of the monitor",
                                                             "stop of a waiter",
                                                             "stop of all",
                                                             "crash",
                                                             "crash with a snapshot",
                                                             "crash without data",
                                                             "hang",
                                                             "SCRIPT FLUSH",
                                                             "clock"};

  // `calm`: it has none, but clocks that differ.
  Faults(Random& random, bool calm) : random_(random) {
    for (double& one : chances_) one = random.chance(0.5) ? 0.002 * static_cast<double>(random.between(1, 10)) : 0;
    for (std::size_t i = 0; calm && i < kKinds; ++i) allow(static_cast<Kind>(i), i + 1 == kKinds);
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
