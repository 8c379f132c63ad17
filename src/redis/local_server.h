// SPDX-License-Identifier: MIT
// The private server behind local: addresses.
//
// Its socket, append-only file and log are in a folder of ours with mode 0700. Redis binds its socket before it sets
// the mode, so only the folder keeps others out.
//
// Two jobs that look in different places would both get the lock, so the folder must be one that all processes of a
// user on a host agree on, and that others cannot reach:
//   - It is below the home in the user database (passwd(5)). $HOME is set freely by sudo(8), cron(8) and service
//   managers,
//     and cron jobs have no $XDG_RUNTIME_DIR. /tmp is emptied by cleaners, may be a service's own (PrivateTmp), and
//     anyone may get there first.
//   - It is a separate folder for this host (machine-id(5)), because hosts may share a home over NFS, and an
//   append-only
//     file must not have two servers. If there is no home, or it cannot be written, the user has to name a folder.
//
// Two locks (flock(2)):
//   the folder   held by the process that serves it and, inherited, by its redis-server: as long as one of them lives,
//                nobody else can start a server on the same append-only file. A file in the folder could be removed and
//                made again, and then be locked twice. The serving process checks at the start, and then each second,
//                that the folder is still the one at the path. It also holds an fcntl(2) lock, which tells others its
//                pid. On NFS the lock excludes only processes of this host, but no other host uses this folder.
//   start.lock   held by the first of several users who start the server at the same time. If someone removes it, two
//                servers are started, and the folder's lock lets one of them live.
#pragma once

#include <sys/types.h>

#include "redis/connection.h"
#include "redis/endpoint.h"

namespace rlock::redis {

class LocalServer {
 public:
  // Starts a background process that serves the address `url`, outlives us and appends its messages to a file. Returns
  // a descriptor that becomes readable when it ends. See run/daemon.h.
  using Launch = std::function<Result<UniqueFd>(const std::string& url, const std::string& log_path)>;

  // The default folder: ~/.local/state/rlock/HOST of the current user. It need not exist.
  // Errors (config): the user has no entry in the user database, or no home; the message says what to write instead.
  static Result<std::string> own_folder();

  // REQUIRES: a folder that is not empty, and short enough for its socket, as from parse_endpoint and own_folder.
  explicit LocalServer(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  std::string socket_path() const { return endpoint().socket_path(); }
  Endpoint endpoint() const { return {.kind = Endpoint::Kind::local, .path = folder_}; }
  std::string log_path() const { return folder_ + "/redis.log"; }

  // Makes sure that the server answers: creates the folder, and has `launch` start a server if necessary. If many call
  // this at once, one starts it. Errors: config (the folder is not only ours, or others could replace it), unavailable
  // (the server did not start, or keeps crashing; says why, and where its log is), system, interrupted.
  Result<void> ensure(const Launch& launch, const Until& until) const;

  // Whether a server answers, even if it cannot serve now. Errors: those of Connection, except unavailable.
  Result<bool> answers(const Until& until) const;

  // For the serving process: checks the folder and locks it. Children inherit the descriptor.
  // Errors: unavailable (it is already served), config, system.
  Result<UniqueFd> claim() const;

  // For the serving process, before it starts a server on a folder without data: makes an append-only file with one
  // command, so that the server has that data when it begins to answer. Errors: system. REQUIRES: claim().
  Result<void> begin_with(const Words& command) const;

  // The process that has claimed the folder and would restart its redis-server; 0: a process that we cannot see (in
  // another PID namespace). None: the folder is not served. Does not create it.
  std::optional<pid_t> served_by() const;

  // The state of the folder that `claimed` has locked.
  enum class State {
    reachable,    // it is still at its path, and contains a socket
    no_socket,    // no server can be reached: none was started yet, or its socket was removed
    files_taken,  // the same, and the append-only file is missing, too
    replaced,     // it is no longer at its path: others would start a second server there
    unknown,      // it could not be examined, maybe only now (a disk or an NFS server that fails); errno says why
  };
  State look(const UniqueFd& claimed) const;

  // Records why the server cannot start, for processes that wait for it; "": removes that.
  void leave_word(const std::string& trouble) const;

  // The command line of its redis-server: every write reaches the append-only file before its reply, no network, no
  // eviction.
  std::vector<std::string> server_command() const;

 private:
  Result<UniqueFd> open_folder() const;
  std::string why_not_started() const;
  std::string word_path() const { return folder_ + "/trouble"; }

  std::string folder_;
};

}  // namespace rlock::redis
