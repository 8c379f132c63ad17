// SPDX-License-Identifier: MIT
// Which faults a world has: each kind or not, and how often, by the seed ("swarm testing").
#pragma once

#include <array>
#include <vector>

#include "scheduler.h"

namespace rlock::sim {

class Faults {
 public:
  enum class Kind {
    // of a message or connection
    cut,            // the connection ends before it arrives
    lost_reply,     // it is executed, and the connection ends
    torn_reply,     // the same, after a part of the reply
    silence,        // the connection is dead without a sign
    delay,          // up to 40 s
    request_twice,  // it is executed once more, later
    message_twice,  // what was published
    part,           // a client and a server hear nothing of each other for a while, or one of them not of the other
    // of a process
    kill_guards,   // all of them, by kill -9
    stop_monitor,  // for a while; the frontend and the command go on
    stop_waiter,   // one that waits, for a while
    stop_all,      // the guards and the command
    edge,          // of what deadlines allow for (World::press)
    taken,         // its lock is taken away, or asked for
    // of a server
    crash,
    crash_some,  // it comes back with an earlier state of its data
    crash_all,   // it comes back empty
    hang,        // maybe with jobs on the same host
    forget_scripts,
    full,       // it is out of memory, for a while
    busy,       // with a script, for a while
    read_only,  // for a while
    clock,      // it steps, within the model; and its rate differs
    // of several servers
    split,      // the master is cut off, maybe together with others
    fail_over,  // SENTINEL FAILOVER or CLUSTER FAILOVER
    move,       // a slot of a cluster, key by key
    move_at_once,
    // outside of what rlock promises (--outside)
    large_step,   // of a server's clock
    stop_guards,  // all of them, but the command goes on
    evict,        // a key is gone
    lost_shard,   // a replica in a cluster that takes its master's place has an earlier state
    unfenced,     // there is no min-replicas-to-write
  };
  static constexpr std::size_t kKinds = 32;
  // With whom it happens to.
  static constexpr std::array<const char*, kKinds> kNames = {"cut, link",
                                                             "lost reply, link",
                                                             "torn reply, link",
                                                             "silence, link",
                                                             "delay, link",
                                                             "request twice, link",
                                                             "message twice, link",
                                                             "partition, job",
                                                             "kill -9, job",
                                                             "stop of the monitor, job",
                                                             "stop, waiting job",
                                                             "stop of all, job",
                                                             "the edge, job",
                                                             "lock taken away, job",
                                                             "crash, server",
                                                             "crash with a snapshot, server",
                                                             "crash without data, server",
                                                             "hang, server",
                                                             "SCRIPT FLUSH, server",
                                                             "full memory, server",
                                                             "BUSY, server",
                                                             "READONLY, server",
                                                             "step of the clock, server",
                                                             "partition of the servers, server",
                                                             "failover by hand, server",
                                                             "move of a slot",
                                                             "move of a slot at once",
                                                             "large step of the clock, server",
                                                             "stop of the guards, job",
                                                             "eviction, server",
                                                             "failover with a snapshot, server",
                                                             "no min-replicas-to-write"};

  // A set of kinds.
  using Kinds = std::uint32_t;
  static Kinds set_of(std::size_t kind) { return Kinds{1} << kind; }
  static Kinds set_of(Kind kind) { return set_of(static_cast<std::size_t>(kind)); }

  // `without`, `with`: kinds that it does not have, or has, no matter what the seed says.
  Faults(std::uint64_t seed, bool calm, bool outside, Kinds without, Kinds with) {
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      // Of its own, so that without one kind the others happen as before, for as long as they can.
      Random& random = randoms_.emplace_back(seed * kKinds + kind);
      const double chance =
          random.chance(0.5) || with & set_of(kind) ? 0.002 * static_cast<double>(random.between(1, 10)) : 0;
      const bool allowed = outside || kind < static_cast<std::size_t>(Kind::large_step);
      const bool missing = !allowed || without & set_of(kind) || (calm && !is_harmless(static_cast<Kind>(kind)));
      chances_.push_back(missing ? 0 : chance);
    }
  }

  // What keeps somebody from hearing what all others have heard.
  static Kinds partitions() { return set_of(Kind::split) | set_of(Kind::part) | set_of(Kind::edge); }
  // By which a master is replaced that goes on.
  static Kinds replacements() { return set_of(Kind::fail_over) | set_of(Kind::hang); }
  // A calm world has these, too.
  static bool is_harmless(Kind kind) { return kind == Kind::clock || kind == Kind::move || kind == Kind::move_at_once; }

  // Whether it happens now to that link, job or server; once the faults are over, it does not.
  bool happens(Kind kind, std::int64_t whom) {
    const auto which = static_cast<std::size_t>(kind);
    if (over_ || chances_[which] == 0 || !randoms_[which].chance(chances_[which])) return false;
    ++counts_[which];
    world->note(kNames[which], whom);
    world->tell([&] { return std::string("FAULT: ") + kNames[which] + " " + std::to_string(whom); });
    return true;
  }
  bool has(Kind kind) const { return chances_[static_cast<std::size_t>(kind)] > 0; }
  void end() { over_ = true; }
  const std::array<std::uint64_t, kKinds>& counts() const { return counts_; }

 private:
  std::vector<Random> randoms_;  // one for each kind
  std::vector<double> chances_;
  std::array<std::uint64_t, kKinds> counts_{};
  bool over_ = false;
};

}  // namespace rlock::sim
