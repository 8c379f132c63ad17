// SPDX-License-Identifier: MIT
// Where a Redis server is, and as whom to speak to it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/secret.h"
#include "base/wait.h"
#include "redis/tls.h"
#include "redis/url.h"

namespace rlock::redis {

// The socket of a local: server, in its folder.
inline constexpr std::string_view kLocalSocket = "redis.sock";

// Where a password that may change is read anew for each connection. Threads may read at the same time.
struct PasswordSource {
  // Errors: config (there is none to be had now), interrupted.
  std::function<Result<Secret>(const Until&)> read;
  // Reading starts processes: a process that waits for the end of all its children has another one read it.
  bool starts_processes = false;
};

// How often one exchange follows servers that send it on.
inline constexpr int kMostRedirections = 6;

// The hosts that may get the password. Servers name other servers: those of a cluster by MOVED, ASK and the list of
// slots, Sentinels the master. A loop of them must not hand the password to ever more hosts. Shared by all that speak
// to the servers of one address; threads may use it at the same time.
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

struct Endpoint {
  enum class Kind { tcp, unix_socket, local };

  Kind kind = Kind::tcp;
  std::string host = "127.0.0.1";
  int port = 6379;
  std::optional<TlsSettings> tls;  // none: plain text
  // unix_socket: the socket; local: the server's folder; empty, as read from an address: the user's own.
  std::string path;
  int db = 0;
  std::string user;         // empty: AUTH with the password alone
  bool hides_user = false;  // it stands in the address where redis-cli(1) has a password, and may be one
  std::optional<Secret> password;
  std::optional<PasswordSource> password_source;  // beats `password`
  // For a user whom the server refuses: where the password comes from, or how to give one; never a part of it.
  std::string about_password;

  std::string client_name;  // what CLIENT LIST shows of our connections; empty: nothing

  std::shared_ptr<Audience> audience;  // of a server that others name: who may get the password; else null

  // Error: unavailable, as the audience says.
  Result<void> may_get_password() const;
  bool has_password() const { return password || password_source; }

  // unix_socket, local: where the socket is.
  std::string socket_path() const { return kind == Kind::local ? path + "/" + std::string(kLocalSocket) : path; }

  // The address as a URL, without what is or may be a password. Safe to show and to log.
  std::string display() const { return text(display_login()); }
  // The same with the user, whatever it is, as parse_endpoint reads it back. Not to be shown.
  std::string url() const { return text(login()); }
  // Parts of them: "user@", "/3", empty where there is nothing to say.
  std::string display_login() const { return hides_user && !user.empty() ? "***@" : login(); }
  std::string login() const;
  std::string display_db() const;

 private:
  std::string text(const std::string& login) const;
};

// Reads redis://[user[:password]@]host[:port][/db], rediss:// in the same way for TLS,
// unix://[user[:password]@]/path[?db=N], local: and local:/dir. User, password, host and path may be percent-encoded
// (RFC 3986 §2.1), IPv6 addresses stand in brackets (§3.2.2). A user without a colon is a user without a password;
// `:password@` is a password without a user, as redis-cli(1) reads it.
// Errors (usage): anything else. The message never holds what may be a password.
Result<Endpoint> parse_endpoint(std::string_view url);

// Where the password stands in `url`, as a part of it; empty if there is none.
std::string_view password_in(std::string_view url);
// The same of what may be one: also a word without a colon. For wiping it from argv.
std::string_view secret_in(std::string_view url);

}  // namespace rlock::redis
