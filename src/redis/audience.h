// SPDX-License-Identifier: MIT
// The hosts that may get the password. Servers name other servers: those of a cluster by MOVED, ASK and the list of slots,
// Sentinels the master. A loop of them must not hand the password to ever more hosts.
#pragma once

#include <mutex>
#include <vector>

#include "base/clock.h"
#include "redis/url.h"

namespace rlock::redis {

// How often one exchange follows servers that send it on.
inline constexpr int kMostRedirections = 6;

// Shared by all that speak to the servers of one address; threads may use it at the same time.
class Audience {
 public:
  // The hosts of the address, which may always have it, and how many servers there are.
  Audience(std::vector<Host> given, std::size_t servers) : given_(std::move(given)), servers_(servers) {}

  // The servers say how many they are.
  void expect(std::size_t servers);
  // An exchange begins that needs so many servers, if none sends it on.
  void begin(std::size_t needed);
  // Whether the host may get it. Since something was served last, as many hosts may as there are servers, but no more
  // than one exchange can need; then one more after 1 s, 2 s, 4 s ..., at most a minute each.
  bool admits(const Host& host);
  // It gets it now.
  void add(const Host& host);
  // One of them has done what it was asked for.
  void served();

 private:
  bool knows(const Host& host) const;
  bool has_room() const;

  std::mutex mutex_;
  const std::vector<Host> given_;
  std::vector<Host> others_;  // that have it, and have served nothing since
  std::size_t servers_, needed_ = 1;
  TimePoint next_{};  // when one more may; the beginning of time: not known yet
  milliseconds pause_ = 1s;
};

}  // namespace rlock::redis
