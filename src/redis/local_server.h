// SPDX-License-Identifier: MIT
// The private server behind local: addresses.
//
// A folder of mode 0700 that belongs to us holds its socket, its append-only file and its log. Redis binds
// its socket before it sets the mode, so only the folder keeps others out.
//
// Two jobs that look in two places both believe that they hold the lock. The folder of a user is where all of that
// user's processes on a host agree on, and nobody else comes:
//   - below the home of the user database (passwd(5)), not below $HOME, which sudo(8), cron(8) and service managers
//     set as they like, nor below $XDG_RUNTIME_DIR, which cron jobs have none of. Not below /tmp: cleaners empty it,
//     a service may have one of its own (PrivateTmp), and anybody may be there first.
//   - in a folder for this host (machine-id(5)), because hosts may share a home over NFS, and one append-only file must
//     not have two servers. Where there is no home, or it cannot be written, there is no other place: the user is asked
//     to name one.
//
// Two locks (flock(2)):
//   the folder   held by the process that serves it and, inherited, by its redis-server: while either lives nobody
//                else can start a server on the same append-only file. It is no file in the folder, which could be
//                removed and made anew, and then be locked by two. The process that has it looks whether the folder is
//                still the one at the path: at the start, and then each second. It holds the folder by fcntl(2), too,
//                which tells others its pid. On NFS only the processes of one host exclude each other by it, and no
//                other host's come here.
//   start.lock   held while one of several first users starts the server, so that they start one. If somebody
//                removes it, two are started, and the folder's lock lets one of them live.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "base/wait.h"
#include "redis/endpoint.h"

namespace rlock::redis {

class LocalServer {
 public:
  // Starts a process in the background that serves the address `url` and outlives us, its messages going to the end
  // of a file, and returns a descriptor that becomes readable when it has ended. See run/daemon.h.
  using Launch = std::function<Result<UniqueFd>(const std::string& url, const std::string& log_path)>;

  // The folder of an address that names none: ~/.local/state/rlock/HOST of the user that we are. It need not exist.
  // Errors (config): the user has no entry in the user database, or no home; says what to write instead.
  static Result<std::string> own_folder();

  // REQUIRES: not empty, and short enough for its socket (parse_endpoint and own_folder see to it).
  explicit LocalServer(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  std::string socket_path() const { return endpoint().socket_path(); }
  Endpoint endpoint() const { return {.kind = Endpoint::Kind::local, .path = folder_}; }
  std::string log_path() const { return folder_ + "/redis.log"; }

  // Makes sure that the server answers: makes the folder and has `launch` start a server if need be. Many may call
  // this at once; one starts it.
  // Errors: config (the folder is not ours alone, or others could replace it), unavailable (it did not start, or keeps
  // crashing: says why, and where its log is), system, interrupted.
  Result<void> ensure(const Launch& launch, const Until& until) const;

  // Whether it answers, be it that it cannot serve now. False where nobody does. Errors: as for a Connection
  // otherwise.
  Result<bool> answers(const Until& until) const;

  // For the process that serves: checks the folder and locks it. The descriptor is inherited by children.
  // Errors: unavailable (another serves already), config, system.
  Result<UniqueFd> claim() const;

  // The process that has claimed the folder and would start its redis-server again; 0: one that we cannot see (in
  // another PID namespace). None: nobody serves it. Does not make the folder.
  std::optional<pid_t> served_by() const;

  // The state of the folder that `claimed` has locked.
  enum class State {
    reachable,    // it is still at its path, and a socket is in it
    no_socket,    // no server can be reached: none has been started yet, or its socket was removed
    files_taken,  // the same, and the append-only file is not there either
    replaced,     // it is not at its path any more: others would start a second server there
    unknown,      // it could not be looked at, which may pass (a disk or an NFS server that fails); errno says why
  };
  State look(const UniqueFd& claimed) const;

  // Leaves word for those who wait for the server why they do so in vain; "": they do not any more.
  void leave_word(const std::string& trouble) const;

  // The command line of the redis-server for this folder: one database file that every write reaches
  // before its reply, no network, no eviction.
  std::vector<std::string> server_command() const;

 private:
  Result<UniqueFd> open_folder() const;
  std::string last_words() const;
  std::string word_path() const { return folder_ + "/trouble"; }

  std::string folder_;
};

}  // namespace rlock::redis
