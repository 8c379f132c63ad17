// SPDX-License-Identifier: MIT
// Where a Redis server is, and how to log in to it.
#pragma once

#include <mutex>
#include <vector>

#include "base/secret.h"
#include "redis/tls.h"
#include "redis/url.h"

namespace rlock::redis {

// The socket of a local: server, in its folder.
inline constexpr std::string_view kLocalSocket = "redis.sock";

// The source of a password that may change, so it is read for each connection. Threads may read at the same time.
struct PasswordSource {
  // Errors: config (it cannot be read now), interrupted.
  std::function<Result<Secret>(const Until&)> read;
  // Reading starts processes. A process that waits for all its children to end lets another process read it.
  bool starts_processes = false;
};

// How many redirections one exchange follows.
inline constexpr int kMostRedirections = 6;

// The hosts that may get the password. Servers name other servers: those of a cluster by MOVED, ASK and the list of
// slots, Sentinels the master. If they keep naming new hosts, these must not all get the password. Shared by all
// connections for one address; threads may use it at the same time.
class Audience {
 public:
  // The hosts of the address, which may always have it, and how many servers there are.
  Audience(std::vector<Host> given, std::size_t servers) : given_(std::move(given)), servers_(servers) {}

  // The number of servers, as they say it.
  void expect(std::size_t servers);
  // An exchange starts that needs this many servers, without redirections.
  void begin(std::size_t needed);
  // Whether the host may get it. Since a request was last served, as many hosts may as there are servers, but not more
  // than one exchange can need; then one more after 1 s, 2 s, 4 s ..., up to a minute each.
  bool admits(const Host& host);
  // The host gets it now.
  void add(const Host& host);
  // One of the hosts has served a request.
  void served();

 private:
  bool knows(const Host& host) const;
  bool has_room() const;

  std::mutex mutex_;
  const std::vector<Host> given_;
  std::vector<Host> others_;  // have it, and have served nothing since
  std::size_t servers_, needed_ = 1;
  TimePoint next_{};  // when one more may get it; zero: unknown
  milliseconds pause_ = 1s;
};

struct Endpoint {
  enum class Kind { tcp, unix_socket, local };

  Kind kind = Kind::tcp;
  std::string host = "127.0.0.1";
  int port = 6379;
  std::optional<TlsSettings> tls;  // none: plain text
  // unix_socket: the socket; local: the server's folder; empty, as read from an address: the user's own.
  std::string path;
  int db = 0;
  std::string user;         // empty: AUTH with only the password
  bool hides_user = false;  // it may be a password, because redis-cli(1) reads one in its place
  std::optional<Secret> password;
  std::optional<PasswordSource> password_source;  // takes precedence over `password`
  // Advice if the server refuses the login: where the password comes from, or how to give one; never a part of it.
  std::string about_password;

  std::string client_name;  // for CLIENT LIST; empty: none

  std::shared_ptr<Audience> audience;  // who may get the password, if others name the server; else null

  // Errors: unavailable if the audience forbids it.
  Result<void> may_get_password() const;
  bool has_password() const { return password || password_source; }
  bool reads_password_by_process() const { return password_source && password_source->starts_processes; }

  // unix_socket, local: where the socket is.
  std::string socket_path() const { return kind == Kind::local ? path + "/" + std::string(kLocalSocket) : path; }

  // A URL without anything that is or may be a password. Safe to show and to log.
  std::string display() const { return text(display_login()); }
  // The same with the user, even if it may be a password; parse_endpoint reads it back. Not to be shown.
  std::string url() const { return text(login()); }
  // Parts of them: "user@", "/3"; may be empty.
  std::string display_login() const { return hides_user && !user.empty() ? "***@" : login(); }
  std::string login() const;
  std::string display_db() const;

 private:
  std::string text(const std::string& login) const;
};

// Reads redis://[user[:password]@]host[:port][/db], rediss:// for the same with TLS,
// unix://[user[:password]@]/path[?db=N], local: and local:/dir. User, password, host and path may be percent-encoded
// (RFC 3986 §2.1), IPv6 addresses are in brackets (§3.2.2). A user without a colon has no password; `:password@` is a
// password without a user, as for redis-cli(1).
// Errors (usage): anything else. The message never contains what may be a password.
Result<Endpoint> parse_endpoint(std::string_view url);

// The password in `url`, as a part of it; empty if there is none.
std::string_view password_in(std::string_view url);
// The same for anything that may be a password, such as a user without a colon; to wipe it from argv.
std::string_view secret_in(std::string_view url);

}  // namespace rlock::redis
