// SPDX-License-Identifier: MIT
#include "redis/endpoint.h"

#include "base/text.h"

namespace rlock::redis {
namespace {

constexpr milliseconds kFirstPause = 1s, kLongestPause = 1min;

}  // namespace

std::string percent_encoded(std::string_view text, std::string_view also) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool meant = std::string_view("%@?#[]").contains(c) || also.contains(c);
    if (byte > 0x20 && byte < 0x7f && !meant) {
      out += c;
    } else {
      constexpr char hex[] = "0123456789ABCDEF";
      out += {'%', hex[byte >> 4], hex[byte & 15]};
    }
  }
  return out;
}

std::string Host::display() const {
  const bool v6 = name.contains(':');
  return (v6 ? "[" + percent_encoded(name, "/,") + "]" : percent_encoded(name, "/,")) + ":" + std::to_string(port);
}

Result<void> Endpoint::may_get_password() const {
  if (!audience || !has_password() || audience->admits({host, port})) return {};
  return fail(
      Error::Code::unavailable,
      escaped(display()) +
          ": the password is not sent to yet another server, because none of those that got it serves requests, and "
          "they name others; check their lists with redis-cli CLUSTER SLOTS, or SENTINEL MASTERS for Sentinels");
}

Endpoint Endpoint::at(const Host& place) const {
  Endpoint there = *this;
  there.host = place.name;
  there.port = place.port;
  return there;
}

Result<Secret> Endpoint::read_password(const Until& until) const {
  if (!password_source) return *password;
  Secret read = RLOCK_TRY(password_source->read(until));
  read.keep_from_children();  // another thread may fork before it is wiped
  return read;
}

std::unexpected<Error> Endpoint::failed(Error error) const {
  error.maybe_executed = false;
  return std::unexpected(std::move(error).in(escaped(display())));
}

std::string Endpoint::login(bool whole) const {
  if (user.empty()) return "";
  return (hides_user && !whole ? "***" : percent_encoded(user, ":/")) + "@";
}

std::string Endpoint::text(bool whole) const {
  if (kind == Kind::local) return "local:" + percent_encoded(path);
  if (kind == Kind::unix_socket) {
    return "unix://" + login(whole) + percent_encoded(path) + (db ? "?db=" + std::to_string(db) : "");
  }
  return (tls ? "rediss://" : "redis://") + login(whole) + Host{host, port}.display() + database();
}

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
