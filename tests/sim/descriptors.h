// SPDX-License-Identifier: MIT
// The descriptors of all processes of a world: events, timers, sockets, and epoll(7)s of them. The kernel knows nothing
// of them.
#pragma once

#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace rlock::sim {

// Nanoseconds since the start of the world.
using Time = std::int64_t;
inline constexpr Time kNever = INT64_MAX, kMicrosecond = 1000, kMillisecond = 1'000'000, kSecond = 1'000'000'000;

struct Descriptor {
  enum class Kind { closed, event, timer, socket, epoll };
  Kind kind = Kind::closed;
  std::uint64_t count = 0;     // of an event
  Time due = kNever;           // a timer is readable from then on, and a socket connected
  int link = 0;                // of a socket: its number in the network; 0: it has none
  std::string unread{};        // what a socket has received
  bool ended = false;          // it receives no more
  std::vector<int> watched{};  // by an epoll, to be read

  short ready(short wanted, Time now) const {
    switch (kind) {
      case Kind::event: return count > 0 ? wanted & POLLIN : 0;
      case Kind::timer: return due <= now ? wanted & POLLIN : 0;
      case Kind::socket: break;
      case Kind::epoll: return 0;  // Descriptors::ready() knows
      case Kind::closed: return POLLNVAL;
    }
    if (due > now) return 0;
    if (ended) return static_cast<short>((wanted & (POLLIN | POLLOUT)) | POLLHUP);
    return static_cast<short>(wanted & (unread.empty() ? POLLOUT : POLLIN | POLLOUT));
  }
};

class Descriptors {
 public:
  // Above all numbers of the kernel's.
  static constexpr int kFirst = 1 << 20;

  int make(Descriptor::Kind kind) {
    if (free_.empty()) {
      free_.push_back(kFirst + static_cast<int>(all_.size()));
      all_.emplace_back();
    }
    const int fd = free_.back();
    free_.pop_back();
    *find(fd) = {.kind = kind};
    return fd;
  }
  // Null: it is one of the kernel's, which nobody here waits for, or -1.
  Descriptor* find(int fd) { return fd < kFirst ? nullptr : &all_[static_cast<std::size_t>(fd - kFirst)]; }
  // What poll(2) says of it.
  short ready(int fd, short wanted, Time now) {
    const Descriptor* descriptor = find(fd);
    if (!descriptor) return 0;
    const auto readable = [&](int watched) { return find(watched)->ready(POLLIN, now) != 0; };
    if (std::ranges::any_of(descriptor->watched, readable)) return static_cast<short>(wanted & POLLIN);
    return descriptor->ready(wanted, now);
  }
  void close(int fd) {
    *find(fd) = {};
    free_.push_back(fd);
  }

 private:
  std::vector<Descriptor> all_;
  std::vector<int> free_;
};

}  // namespace rlock::sim
