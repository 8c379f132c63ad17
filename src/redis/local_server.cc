// SPDX-License-Identifier: MIT
#include "redis/local_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/account.h"
#include "base/text.h"
#include "base/trust.h"
#include "base/write_line.h"
#include "redis/client.h"

namespace rlock::redis {
namespace {

std::unexpected<Error> not_ours(const std::string& folder, const std::string& why) {
  return fail(Error::Code::config, in_quotes(folder) + " " + why + ": not used for a local server");
}

Result<UniqueFd> open_lock_file(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return std::unexpected(system_error(path));
  return fd;
}

// flock(2) with a deadline. It polls, because no call waits for a lock and a descriptor at once.
Result<void> lock_file(int fd, const std::string& path, const Until& until) {
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return std::unexpected(system_error(path));
    if (until.over())
      return fail(Error::Code::unavailable, path + ": another process has been starting the server for too long");
    if (wait_for(-1, 0, until.at_most(10ms)) == WaitEnd::interrupted)
      return fail(Error::Code::interrupted, "interrupted");
  }
  return {};
}

constexpr const char* kOldFile = "appendonly.aof";            // newer servers convert it
constexpr const char* kKept[] = {"appendonlydir", kOldFile};  // a folder since Redis 7.0, a file before

constexpr std::string_view kNameOne = "; name a folder for the private server: local:/dir";
// Where a program keeps its state in a home (XDG Base Directory Specification).
constexpr std::string_view kBelowHome[] = {"/.local", "/state", "/rlock"};

// An id of this host, which unlike its name does not change while the host runs. Many containers have no machine-id;
// then it is the name.
std::string this_host() {
  constexpr std::size_t digits = 16;
  std::string id;
  std::getline(std::ifstream("/etc/machine-id"), id);
  if (id.size() >= digits && id.find_first_not_of("0123456789abcdef") == std::string::npos) return id.substr(0, digits);
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return *name ? name : "localhost";
}

Result<std::string> home() {
  const auto account = account_of(geteuid());
  const std::string user = "user id " + std::to_string(geteuid());
  if (!account) {
    return fail(Error::Code::config,
                "local: has no default folder: " + user + " is not in the user database" + std::string(kNameOne));
  }
  std::string home = account->home;
  while (home.size() > 1 && home.ends_with('/')) home.pop_back();
  struct stat info{};
  if (home.starts_with('/') && stat(home.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return home;
  return fail(Error::Code::config, "local: has no default folder: the home of " + user + ", " + in_quotes(home) +
                                       ", is not a folder here" + std::string(kNameOne));
}

std::string parent_of(const std::string& path) {
  const std::string parent = path.substr(0, path.find_last_not_of('/') + 1);
  const auto slash = parent.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : parent.substr(0, slash);
}

// A user who may write to a folder above ours could move ours away, and the next job would start a second server.
// Folders between a home and ours are created if necessary; the parent of any other folder must exist.
Result<void> prepare_parents(const std::string& folder) {
  RLOCK_TRY(only_ours_to_lead_to(folder));
  const auto home = rlock::redis::home();
  std::vector<std::string> above = {home ? *home : ""};
  for (const std::string_view part : kBelowHome) above.push_back(above.back() + std::string(part));
  if (!home || parent_of(folder) != above.back()) return {};
  for (const std::string& path : above) {
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
      return std::unexpected(Error{Error::Code::config, system_error(escaped(path)).message + std::string(kNameOne)});
    }
    RLOCK_TRY(only_ours_to_change(path));
  }
  return {};
}

}  // namespace

Result<std::string> LocalServer::own_folder() {
  std::string folder = RLOCK_TRY(home());
  for (const std::string_view part : kBelowHome) folder += part;
  folder += "/" + this_host();
  constexpr std::size_t most = sizeof(sockaddr_un::sun_path) - 1;
  if (LocalServer(folder).socket_path().size() <= most) return folder;
  return fail(Error::Code::config, "local: has no default folder: " + in_quotes(folder) +
                                       " is too long for a Unix socket, whose path can have " + std::to_string(most) +
                                       " bytes" + std::string(kNameOne));
}

Result<UniqueFd> LocalServer::open_folder() const {
  RLOCK_TRY(prepare_parents(folder_));
  if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return std::unexpected(system_error(in_quotes(folder_)));
  UniqueFd fd(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (!fd) {
    return errno == ELOOP || errno == ENOTDIR ? not_ours(folder_, "is not a folder itself")
                                              : std::unexpected(system_error(in_quotes(folder_)));
  }
  struct stat info{};
  if (fstat(fd.get(), &info) != 0) return std::unexpected(system_error(in_quotes(folder_)));
  if (info.st_uid != geteuid())
    return not_ours(folder_, "belongs to another user (id " + std::to_string(info.st_uid) + ")");
  if (info.st_mode & 077) return not_ours(folder_, "can be entered by other users (chmod 700 it)");
  return fd;
}

Result<bool> LocalServer::answers(const Until& until) const {
  Client client(endpoint());
  // Not PING, which a server refuses if its disk is full or it is still loading its file.
  auto reply = client.call({"TIME"}, until);
  if (reply || client.answered()) return true;
  if (reply.error().code == Error::Code::unavailable) return false;  // no server, or one that is ending
  return std::unexpected(std::move(reply).error());
}

Result<void> LocalServer::ensure(const Launch& launch, const Until& until) const {
  RLOCK_TRY(open_folder());
  if (RLOCK_TRY(answers(until))) return {};

  const std::string path = folder_ + "/start.lock";
  const UniqueFd lock = RLOCK_TRY(open_lock_file(path));
  RLOCK_TRY(lock_file(lock.get(), path, until));
  if (RLOCK_TRY(answers(until))) return {};  // another process has started it in the meantime

  const Endpoint here = endpoint();
  const UniqueFd ended = RLOCK_TRY(launch(here.display(), log_path()));
  for (bool launched_ended = false; !RLOCK_TRY(answers(until));) {
    // It also ends if the folder is served by another process, which is restarting its redis-server.
    const bool nobody_serves = launched_ended && claim().has_value();
    if (nobody_serves || until.over()) {
      return fail(Error::Code::unavailable,
                  escaped(here.display()) + ": the server did not start; " + why_not_started());
    }
    const WaitEnd end = wait_for(launched_ended ? -1 : ended.get(), POLLIN, until.at_most(10ms));
    if (end == WaitEnd::interrupted) return fail(Error::Code::interrupted, "interrupted");
    launched_ended = launched_ended || end == WaitEnd::ready;
  }
  return {};
}

Result<UniqueFd> LocalServer::claim() const {
  UniqueFd folder = RLOCK_TRY(open_folder());
  if (flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return std::unexpected(system_error(in_quotes(folder_)));
    return fail(Error::Code::unavailable, "local:" + escaped(folder_) + " is already served");
  }
  if (look(folder) == State::replaced) {
    return fail(Error::Code::unavailable, in_quotes(folder_) + " was removed or replaced just now");
  }
  // For served_by(). Children do not inherit this lock.
  struct flock ours{};
  ours.l_type = F_RDLCK;
  ours.l_whence = SEEK_SET;
  fcntl(folder.get(), F_SETLK, &ours);
  return folder;
}

Result<void> LocalServer::begin_with(const Words& command) const {
  for (const char* kept : kKept) {
    if (std::error_code unknown; std::filesystem::exists(folder_ + "/" + kept, unknown)) return {};
  }
  std::string text = "*" + std::to_string(command.size()) + "\r\n";  // as a client sends it
  for (const std::string_view word : command) {
    text += "$" + std::to_string(word.size()) + "\r\n" + std::string(word) + "\r\n";
  }
  const std::string path = folder_ + "/" + kOldFile;
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file && write_line(file.get(), text)) return {};
  const auto error = system_error(path);
  if (file) unlink(path.c_str());
  return std::unexpected(error);
}

std::optional<pid_t> LocalServer::served_by() const {
  const UniqueFd folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  // Only the folder's user may end the process.
  if (!folder || fstat(folder.get(), &info) != 0 || info.st_uid != geteuid()) return {};
  struct flock in_the_way{};
  in_the_way.l_type = F_WRLCK;
  in_the_way.l_whence = SEEK_SET;
  if (fcntl(folder.get(), F_GETLK, &in_the_way) != 0 || in_the_way.l_type == F_UNLCK) return {};
  return in_the_way.l_pid;
}

LocalServer::State LocalServer::look(const UniqueFd& claimed) const {
  struct stat ours{}, there{}, inside{};
  if (fstat(claimed.get(), &ours) != 0) return State::unknown;
  if (lstat(folder_.c_str(), &there) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? State::replaced : State::unknown;
  }
  if (!same_file(ours, there)) return State::replaced;
  if (fstatat(claimed.get(), kLocalSocket.data(), &inside, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISSOCK(inside.st_mode)) return State::reachable;
  } else if (errno != ENOENT) {
    return State::unknown;
  }
  for (const char* kept : kKept) {
    if (fstatat(claimed.get(), kept, &inside, AT_SYMLINK_NOFOLLOW) == 0) return State::no_socket;
    if (errno != ENOENT) return State::unknown;
  }
  return State::files_taken;
}

void LocalServer::leave_word(const std::string& trouble) const {
  if (trouble.empty()) {
    unlink(word_path().c_str());
  } else {
    std::ofstream(word_path()) << trouble << '\n';
  }
}

std::vector<std::string> LocalServer::server_command() const {
  // Never fsync, because with a sync on its way the server answers before it has written, so a crash would forget
  // grants. The jobs are on this host, so none outlives a power failure.
  // clang-format off
  return {"redis-server", "--port", "0", "--unixsocket", socket_path(), "--unixsocketperm", "600", "--dir", folder_,
          "--logfile", log_path(), "--daemonize", "no", "--appendonly", "yes", "--save", "", "--protected-mode", "yes",
          "--appendfsync", "no", "--maxmemory-policy", "noeviction"};
  // clang-format on
}

std::string LocalServer::why_not_started() const {
  if (std::string word; std::getline(std::ifstream(word_path()), word) && !word.empty()) {
    return escaped(word, 300) + "; its log is " + escaped(log_path());
  }
  std::ifstream log(log_path());
  std::string line, last;
  while (std::getline(log, line)) {
    if (!line.empty()) last = line;
  }
  return last.empty() ? "is redis-server installed, and is there space in that folder?"
                      : "its log " + escaped(log_path()) + " ends with: " + escaped(last, 200);
}

}  // namespace rlock::redis
