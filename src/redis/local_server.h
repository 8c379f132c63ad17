// SPDX-License-Identifier: MIT
// The private server behind local: addresses.
//
// A folder of mode 0700 that belongs to us holds its socket, its append-only file and its log. Redis binds
// its socket before it sets the mode, so only the folder keeps others out. Two flock(2) files decide who
// may do what:
//   start.lock   held while one of several first users starts the server, so that they start one
//   serve.lock   held by the process that serves the folder and, inherited, by its redis-server: while
//                either lives nobody else can start a server on the same append-only file
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/unique_fd.h"

namespace rlock::redis {

class LocalServer {
 public:
  // Starts this very program with other arguments in the background, to outlive us, its messages going to the end
  // of a file, and returns a descriptor that becomes readable when it has ended. See run/daemon.h.
  using Launch = std::function<Result<UniqueFd>(const std::vector<std::string>& argv, const std::string& log_path)>;

  // `folder` empty: the user's own, /tmp/rlock-UID. Not below $XDG_RUNTIME_DIR: cron jobs have none, and
  // a job under cron and one in a shell would look in two places and both believe that they hold the lock.
  explicit LocalServer(std::string folder);

  const std::string& folder() const { return folder_; }
  std::string socket_path() const { return folder_ + "/redis.sock"; }
  std::string log_path() const { return folder_ + "/redis.log"; }

  // Makes sure that the server answers: makes the folder and starts `rlock local serve` through `launch` if
  // need be. Many may call this at once; one starts it.
  // Errors: config (the folder is not ours alone), unavailable (it did not start: says why, from its log),
  // system, interrupted.
  Result<void> ensure(const Launch& launch, const Until& until) const;

  // Whether it answers, be it that it cannot serve now. False where nobody does. Errors: as for a Connection
  // otherwise.
  Result<bool> answers(const Until& until) const;

  // For the process that serves: checks the folder and takes serve.lock. The descriptor is inherited by
  // children. Errors: unavailable (another serves already), config, system.
  Result<UniqueFd> claim() const;

  // The command line of the redis-server for this folder: one database file that every write reaches
  // before its reply, no network, no eviction.
  std::vector<std::string> server_command() const;

 private:
  Result<void> check_folder() const;
  std::string last_words() const;

  std::string folder_;
};

}  // namespace rlock::redis
