// SPDX-License-Identifier: MIT
#include "redis/endpoint.h"

#include <sys/un.h>

#include <algorithm>

#include "base/text.h"

namespace rlock::redis {
namespace {

// A Unix socket's path has to fit into sockaddr_un (unix(7)); `more` bytes will follow it.
Result<void> check_length(const std::string& path, std::size_t more) {
  constexpr std::size_t most = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() + more <= most) return {};
  return bad_address("the path of a Unix socket can have at most " + std::to_string(most) + " bytes; this one has " +
                     std::to_string(path.size() + more));
}

// A user before a colon is not a password, unless it contains an @, which may be the end of a lone password.
bool may_be_password(std::string_view user, std::string_view info) {
  return user.size() == info.size() || user.contains('@');
}

// Removes `user:password@` from the front of `rest`.
Result<void> take_userinfo(std::string_view& rest, Endpoint& endpoint) {
  const std::string_view info = userinfo_of(rest);
  if (!info.data()) return {};
  rest.remove_prefix(info.size() + 1);
  const auto colon = info.find(':');
  endpoint.user = RLOCK_TRY(percent_decoded(info.substr(0, colon), "user"));
  endpoint.hides_user = may_be_password(info.substr(0, colon), info);
  if (colon != std::string_view::npos) {
    const std::string_view password = info.substr(colon + 1);
    if (password.contains("://")) {
      return bad_address("more than one address; separate them with blanks, or write a :// in a password as %3A//");
    }
    endpoint.password = RLOCK_TRY(Secret::written(
        password.size(), [&](std::span<char> out) { return percent_decode(password, "password", out.data()); }));
  }
  return {};
}

Result<Endpoint> parse_tcp(std::string_view rest) {
  Endpoint endpoint;
  RLOCK_TRY(take_userinfo(rest, endpoint));
  if (const auto mark = rest.find_first_of("?#"); mark != std::string_view::npos) {
    return bad_address("an address takes nothing after " + in_quotes(rest.substr(mark, 1)) + "; the database is /N");
  }
  const auto slash = rest.find('/');
  if (rest.substr(0, slash).contains(',')) {
    return bad_address(
        "redis:// has only one host; separate several addresses with blanks; only redis+cluster:// and "
        "redis+sentinel:// use commas");
  }
  Host host = RLOCK_TRY(read_host(rest.substr(0, slash), {endpoint.host, endpoint.port}));
  endpoint.host = std::move(host.name);
  endpoint.port = host.port;
  if (slash != std::string_view::npos && slash + 1 < rest.size()) {
    endpoint.db = RLOCK_TRY(number_in(rest.substr(slash + 1), 0, kMostDatabases, "database"));
  }
  return endpoint;
}

Result<Endpoint> parse_unix(std::string_view rest) {
  Endpoint endpoint{.kind = Endpoint::Kind::unix_socket};
  RLOCK_TRY(take_userinfo(rest, endpoint));
  const auto mark = rest.find('?');
  if (mark != std::string_view::npos) {
    const std::string_view query = rest.substr(mark + 1);
    if (!query.starts_with("db=")) return bad_address("unix:// takes ?db=N and nothing else");
    endpoint.db = RLOCK_TRY(number_in(query.substr(3), 0, kMostDatabases, "database"));
  }
  endpoint.path = RLOCK_TRY(percent_decoded(rest.substr(0, mark), "path"));
  if (!endpoint.path.starts_with('/'))
    return bad_address("unix:// needs an absolute path, as in unix:///run/redis.sock");
  RLOCK_TRY(check_length(endpoint.path, 0));
  return endpoint;
}

Result<Endpoint> parse_local(std::string_view rest) {
  Endpoint endpoint{.kind = Endpoint::Kind::local};
  endpoint.path = RLOCK_TRY(percent_decoded(rest, "path"));
  if (!rest.empty() && !endpoint.path.starts_with('/')) {
    return bad_address("only an absolute folder can follow local:, as in local:/var/lib/rlock");
  }
  // Before a slash at the end, the kernel would follow a link; the folder must not be one.
  while (endpoint.path.size() > 1 && endpoint.path.ends_with('/')) endpoint.path.pop_back();
  RLOCK_TRY(check_length(endpoint.path, 1 + kLocalSocket.size()));
  return endpoint;
}

constexpr milliseconds kFirstPause = 1s, kLongestPause = 1min;

// What an address without a known scheme probably means; "": unclear, or it may contain a password.
std::string meant_by(std::string_view url) {
  constexpr std::string_view kUnix = "unix:", kMark = "://";
  constexpr std::string_view kHarmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]/";
  std::string_view path = url;
  if (path.starts_with(kUnix)) path.remove_prefix(kUnix.size());
  if (path.starts_with('/')) return path.contains('@') ? "" : "unix://" + std::string(path);
  const std::size_t mark = url.find(kMark);
  const bool has_scheme = mark != url.npos;
  const std::string_view scheme = url.substr(0, has_scheme ? mark : 0);
  const std::string_view rest = has_scheme ? url.substr(mark + kMark.size()) : url;
  // A lone word must not be shown, because it may be a password.
  if (rest.find_first_not_of(kHarmless) != rest.npos || (!has_scheme && !rest.contains(':')) || !parse_tcp(rest))
    return "";
  return (scheme.ends_with('s') ? "rediss://" : "redis://") + std::string(rest);
}

std::string_view userinfo_in(std::string_view url) {
  const auto scheme = url.find("://");
  return scheme == std::string_view::npos ? std::string_view{} : userinfo_of(url.substr(scheme + 3));
}

}  // namespace

Result<Endpoint> parse_endpoint(std::string_view url) {
  const auto take = [&](std::string_view scheme) {
    if (!url.starts_with(scheme)) return false;
    url.remove_prefix(scheme.size());
    return true;
  };
  if (take("redis://")) return parse_tcp(url);
  if (take("rediss://")) {
    Endpoint endpoint = RLOCK_TRY(parse_tcp(url));
    endpoint.tls.emplace();
    return endpoint;
  }
  if (take("unix://")) return parse_unix(url);
  if (take("local:")) return parse_local(url);
  // Only the part before the colon can be shown, because the rest may contain a password.
  const auto colon = url.find(':');
  const std::string meant = meant_by(url);
  const bool no_scheme = colon == std::string_view::npos || url.substr(0, colon).contains('@') ||
                         (!meant.empty() && !url.contains("://") && !url.starts_with("unix:"));
  return bad_address((no_scheme ? std::string("no scheme") : "unknown scheme " + in_quotes(url.substr(0, colon + 1))) +
                     (meant.empty() ? "; write redis://host:port, rediss://host:port for TLS, unix:///path or local:"
                                    : "; did you mean " + escaped(meant, 300) + "?"));
}

std::string_view password_in(std::string_view url) {
  const std::string_view info = userinfo_in(url);
  const auto colon = info.find(':');
  return colon == std::string_view::npos ? std::string_view{} : info.substr(colon + 1);
}

std::string_view secret_in(std::string_view url) {
  const std::string_view info = userinfo_in(url);
  return may_be_password(info.substr(0, info.find(':')), info) ? info : password_in(url);
}

Result<void> Endpoint::may_get_password() const {
  if (!audience || !has_password() || audience->admits({host, port})) return {};
  return fail(
      Error::Code::unavailable,
      escaped(display()) +
          ": the password is not sent to yet another server, because none of those that got it serves requests, and "
          "they name others; check their lists with redis-cli CLUSTER SLOTS, or SENTINEL MASTERS for Sentinels");
}

std::string Endpoint::login() const { return user.empty() ? "" : percent_encoded(user, ":/") + "@"; }

std::string Endpoint::display_db() const { return db ? "/" + std::to_string(db) : ""; }

std::string Endpoint::text(const std::string& login) const {
  if (kind == Kind::local) return "local:" + percent_encoded(path);
  if (kind == Kind::unix_socket) {
    return "unix://" + login + percent_encoded(path) + (db ? "?db=" + std::to_string(db) : "");
  }
  return (tls ? "rediss://" : "redis://") + login + Host{host, port}.display() + display_db();
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
