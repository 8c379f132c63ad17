// SPDX-License-Identifier: MIT
// The private server behind local: addresses. A connection that finds no server starts it (redis/connection.h): that of
// the first job, and after a crash that of the next one, of a running job that renews its lock, or of a waiter. Its
// append-only file has the locks.
//
// Its socket, append-only file and log are in a folder of ours with mode 0700. Redis binds its socket before it sets
// the mode, so only the folder keeps others out.
//
// Two jobs that look in different places would both get the lock, so the folder must be one that all processes of a
// user on a host agree on, and that others cannot reach:
// - It is below the home in the user database (passwd(5)). $HOME is set freely by sudo(8), cron(8) and systemd(1), and
//   cron jobs have no $XDG_RUNTIME_DIR. /tmp is emptied by cleaners, may be a service's own (PrivateTmp), and anyone
//   may get there first.
// - It is a separate folder for this host (machine-id(5)), because hosts may share a home over NFS, and an append-only
//   file must not have two servers. If there is no home, or it cannot be written, the user has to name a folder.
//
// The server inherits a lock (flock(2)) on the folder from the process that starts it. As long as it lives, nobody else
// can start one on the same append-only file. A file in the folder could be removed and made again, and then be locked
// twice. The folder is the server's standard input, by which others find its process. On NFS the lock excludes only
// processes of this host, but no other host uses this folder.
#pragma once

#include <sys/types.h>

#include <functional>

#include "base/wait.h"
#include "redis/endpoint.h"

namespace rlock::redis {

class LocalServer {
 public:
  // The default folder: ~/.local/state/rlock/HOST of the current user. It need not exist.
  // Errors (config): the user has no entry in the user database, or no home; the message says what to write instead.
  static Result<std::string> own_folder();

  // The program that start() runs: redis-server, or else valkey-server, in PATH; or ../libexec/rlock/redis-server
  // beside this program if it is newer, which takes asking both. Errors: unavailable (none), config (others could
  // change it).
  static Result<std::string> program();
  // Such as 7.0.15; "": it cannot be run.
  static std::string version_of(const std::string& program);

  // REQUIRES: a folder that is not empty, and short enough for its socket, as from parse_address and own_folder.
  explicit LocalServer(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  std::string socket_path() const { return endpoint().socket_path(); }
  Endpoint endpoint() const { return {.kind = Endpoint::Kind::local, .path = folder_}; }
  std::string log_path() const { return folder_ + "/" + kLog; }

  // Creates the folder, and below a home those above it. Errors: config (the folder is not only ours, or others could
  // replace it), system.
  Result<void> prepare() const;

  // Starts the server, unless somebody else does that now, and connects with `connect`, which fails with `unavailable`
  // as long as nobody listens. A server whose socket was removed is stopped first. REQUIRES: Endpoint::new_data.
  // Errors: those of `connect`; unavailable (it did not start; says why, and where its log is), config (the folder is
  // not ours), system, interrupted.
  using Connect = std::function<Result<UniqueFd>()>;
  Result<UniqueFd> start(const Connect& connect, const Endpoint& endpoint, const Until& until) const;

  // The server's process, even if it does not answer. 0 if it is ending, or not visible (in another PID namespace);
  // nothing if it does not run, or is not ours.
  std::optional<pid_t> process() const;
  // What a user can do about one that does not answer.
  std::string how_to_end() const;

  // Whether that process is a private server: of our user, and as far as we may look.
  static bool is_server(pid_t pid);

  // Asks that process to end, with SIGTERM.
  void end() const;

 private:
  static constexpr const char* kLog = "redis.log";

  Result<UniqueFd> open_folder() const;
  Result<UniqueFd> claim() const;
  bool has_data() const;
  Result<std::string> launch(const UniqueFd& claimed, const Endpoint& endpoint) const;
  std::string why_not_started(const std::string& program, std::uintmax_t logged) const;

  std::string folder_;
};

}  // namespace rlock::redis
