// SPDX-License-Identifier: MIT
#include "redis/local_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <fstream>

#include "base/text.h"
#include "redis/client.h"

namespace rlock::redis {
namespace {

std::unexpected<Error> not_ours(const std::string& folder, const std::string& why) {
  return fail(Error::Code::config, in_quotes(folder) + " " + why + ": not used for a local server");
}

Result<UniqueFd> open_lock_file(const std::string& path, int flags) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | flags, 0600));
  if (!fd) return std::unexpected(system_error(path));
  return fd;
}

// flock(2) with a deadline. There is no call that waits for a lock and for a descriptor at once.
Result<void> lock_file(int fd, const std::string& path, const Until& until) {
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return std::unexpected(system_error(path));
    if (until.over())
      return fail(Error::Code::unavailable, path + ": another process is starting the server, and does not get done");
    if (wait_for(-1, 0, until.at_most(10ms)) == WaitEnd::interrupted)
      return fail(Error::Code::interrupted, "interrupted");
  }
  return {};
}

}  // namespace

LocalServer::LocalServer(std::string folder)
    : folder_(folder.empty() ? "/tmp/rlock-" + std::to_string(geteuid()) : std::move(folder)) {}

Result<void> LocalServer::check_folder() const {
  if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return std::unexpected(system_error(in_quotes(folder_)));
  const UniqueFd fd(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) {
    return errno == ELOOP || errno == ENOTDIR ? not_ours(folder_, "is not a folder itself")
                                              : std::unexpected(system_error(in_quotes(folder_)));
  }
  struct stat info{};
  if (fstat(fd.get(), &info) != 0) return std::unexpected(system_error(in_quotes(folder_)));
  if (info.st_uid != geteuid())
    return not_ours(folder_, "belongs to another user (id " + std::to_string(info.st_uid) + ")");
  if (info.st_mode & 077) return not_ours(folder_, "can be entered by other users (chmod 700 it)");
  return {};
}

Result<bool> LocalServer::answers(const Until& until) const {
  Client client(Endpoint{.kind = Endpoint::Kind::local, .path = folder_});
  // Not PING: a server whose disk is full refuses that, and one that still loads its file.
  auto reply = client.call({"TIME"}, until);
  if (reply || client.connected()) return true;
  if (reply.error().code == Error::Code::unavailable) return false;  // nobody, or one that is just dying
  return std::unexpected(std::move(reply).error());
}

Result<void> LocalServer::ensure(const Launch& launch, const Until& until) const {
  RLOCK_TRY(check_folder());
  if (RLOCK_TRY(answers(until))) return {};

  const std::string path = folder_ + "/start.lock";
  const UniqueFd lock = RLOCK_TRY(open_lock_file(path, O_CLOEXEC));
  RLOCK_TRY(lock_file(lock.get(), path, until));
  if (RLOCK_TRY(answers(until))) return {};  // another one has started it meanwhile

  const Endpoint here{.kind = Endpoint::Kind::local, .path = folder_};
  const UniqueFd ended = RLOCK_TRY(launch({"rlock", "local", "serve", "--url", here.display()}, log_path()));
  for (bool launched_ended = false; !RLOCK_TRY(answers(until));) {
    // It also ends when another serves the folder, which has just lost its redis-server and is starting a new one.
    const bool nobody_serves = launched_ended && claim().has_value();
    if (nobody_serves || until.over()) {
      return fail(Error::Code::unavailable, escaped(here.display()) + ": the server did not start" + last_words());
    }
    const WaitEnd end = wait_for(launched_ended ? -1 : ended.get(), POLLIN, until.at_most(10ms));
    if (end == WaitEnd::interrupted) return fail(Error::Code::interrupted, "interrupted");
    launched_ended = launched_ended || end == WaitEnd::ready;
  }
  return {};
}

Result<UniqueFd> LocalServer::claim() const {
  RLOCK_TRY(check_folder());
  const std::string path = folder_ + "/serve.lock";
  UniqueFd lock = RLOCK_TRY(open_lock_file(path, 0));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(Error::Code::unavailable, "local:" + escaped(folder_) + " is served already");
  }
  return lock;
}

std::vector<std::string> LocalServer::server_command() const {
  return {"redis-server",
          "--port",
          "0",
          "--unixsocket",
          socket_path(),
          "--unixsocketperm",
          "600",
          "--dir",
          folder_,
          "--logfile",
          log_path(),
          "--daemonize",
          "no",
          "--appendonly",
          "yes",
          "--save",
          "",
          "--protected-mode",
          "yes",
          "--maxmemory-policy",
          "noeviction"};
}

std::string LocalServer::last_words() const {
  std::ifstream log(log_path());
  std::string line, last;
  while (std::getline(log, line)) {
    if (!line.empty()) last = line;
  }
  return last.empty() ? "; is redis-server installed, and is there room in that folder?"
                      : "; its log " + escaped(log_path()) + " ends with: " + escaped(last, 200);
}

}  // namespace rlock::redis
