// SPDX-License-Identifier: MIT
// Where a Redis server is, and how to log in to it.
#pragma once

#include <sys/un.h>

#include <mutex>
#include <vector>

#include "base/secret.h"
#include "base/wait.h"
#include "redis/tls.h"

namespace rlock::redis {

struct Host {
  std::string name;
  int port = 0;
  bool operator==(const Host&) const = default;

  // In the form that parse_address reads.
  std::string display() const;
};

// `also`: more bytes to encode.
std::string percent_encoded(std::string_view text, std::string_view also = "");

// What fits into sockaddr_un (unix(7)).
inline constexpr std::size_t kLongestSocketPath = sizeof(sockaddr_un::sun_path) - 1;

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
  // local: the commands that a new server begins with, as its append-only file; empty: start none.
  std::string new_data;
  // local: the program of the server that is started, the same as before; "": the newest. To find the newest takes
  // asking programs, for which a running job has no time.
  std::string program;
  int db = 0;
  std::string user;         // empty: AUTH with only the password
  bool hides_user = false;  // it may be a password, because redis-cli(1) reads one in its place
  std::optional<Secret> password;
  std::optional<PasswordSource> password_source;  // takes precedence over `password`
  bool logs_in() const { return !user.empty() || password || password_source; }
  // Advice if the server refuses the login: where the password comes from, or how to give one; never a part of it.
  std::string about_password;

  std::string client_name;  // for CLIENT LIST; empty: none

  std::shared_ptr<Audience> audience;  // who may get the password, if others name the server; else null

  // Errors: unavailable if the audience forbids it.
  Result<void> may_get_password() const;
  // Errors: those of the source. REQUIRES: has_password().
  Result<Secret> read_password(const Until& until) const;
  bool has_password() const { return password || password_source; }
  bool reads_password_by_process() const { return password_source && password_source->starts_processes; }

  // The error with this server in front, if no command of the caller was executed.
  std::unexpected<Error> failed(Error error) const;

  // The same at another place.
  Endpoint at(const Host& place) const;

  // unix_socket, local: where the socket is.
  std::string socket_path() const { return kind == Kind::local ? path + "/redis.sock" : path; }

  // A URL without anything that is or may be a password. Safe to show and to log.
  std::string display() const { return text(false); }
  // The same with the user, even if it may be a password; parse_address reads it back. Not to be shown.
  std::string url() const { return text(true); }
  // Parts of them: "user@", "/3"; may be empty.
  std::string login(bool whole) const;
  std::string database() const { return db ? "/" + std::to_string(db) : ""; }

 private:
  std::string text(bool whole) const;
};

}  // namespace rlock::redis
