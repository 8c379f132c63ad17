// SPDX-License-Identifier: MIT
#include "redis/audience.h"

#include <algorithm>

namespace rlock::redis {
namespace {

constexpr milliseconds kFirstPause = 1s, kLongestPause = 1min;

}  // namespace

void Audience::expect(std::size_t servers) {
  const std::lock_guard guard(mutex_);
  servers_ = servers;
}

void Audience::begin(std::size_t needed) {
  const std::lock_guard guard(mutex_);
  needed_ = needed;
}

bool Audience::knows(const Host& host) const {
  const auto is_in = [&](const std::vector<Host>& hosts) { return std::ranges::find(hosts, host) != hosts.end(); };
  return is_in(given_) || is_in(others_);
}

bool Audience::has_room() const {
  return given_.size() + others_.size() < servers_ && others_.size() < needed_ + kMostRedirections;
}

bool Audience::admits(const Host& host) {
  const std::lock_guard guard(mutex_);
  if (knows(host) || has_room()) return true;
  const TimePoint now = BootClock::now();
  if (next_ == TimePoint{}) next_ = now + pause_;
  return now >= next_;
}

void Audience::add(const Host& host) {
  const std::lock_guard guard(mutex_);
  if (knows(host)) return;
  if (!has_room()) {
    pause_ = std::min(2 * pause_, kLongestPause);
    next_ = BootClock::now() + pause_;
  }
  others_.push_back(host);
}

void Audience::served() {
  const std::lock_guard guard(mutex_);
  others_.clear();
  next_ = {};
  pause_ = kFirstPause;
}

}  // namespace rlock::redis
