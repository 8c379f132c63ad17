// SPDX-License-Identifier: MIT
#include "base/account.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <type_traits>

#include "base/unique_fd.h"
#include "base/wait.h"

namespace rlock {
namespace {

constexpr milliseconds kLimit = 2s;
constexpr std::size_t kMostText = std::size_t{1024} * 1024;

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

// The two databases, which are read alike.
struct Users {
  using Entry = passwd;
  static constexpr const char* file = "/etc/passwd";
  static constexpr const char* name = "passwd";
  static constexpr auto next = fgetpwent;
  static id_t id_of(const passwd& entry) { return entry.pw_uid; }
  static const char* name_of(const passwd& entry) { return entry.pw_name; }
};
struct Groups {
  using Entry = group;
  static constexpr const char* file = "/etc/group";
  static constexpr const char* name = "group";
  static constexpr auto next = fgetgrent;
  static id_t id_of(const group& entry) { return entry.gr_gid; }
  static const char* name_of(const group& entry) { return entry.gr_name; }
};

// Null: not in this file. Valid until the next look. Lines that begin with + or - speak of NIS and of no user.
template <class Database>
const typename Database::Entry* find_in(FILE* file, id_t id) {
  while (const auto* entry = Database::next(file)) {
    const char* name = Database::name_of(*entry);
    if (Database::id_of(*entry) == id && *name != '+' && *name != '-') return entry;
  }
  return nullptr;
}

// Starts getent(1), with its output in the pipe. -1: it is not there.
pid_t start_getent(const char* database, const std::string& id, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const char* argv[] = {"getent", database, id.c_str(), nullptr};
  char* no_environment[] = {nullptr};  // ours may hold a password
  pid_t pid = -1;
  // By its path: who sets PATH shall not choose who we are.
  if (posix_spawn(&pid, "/usr/bin/getent", &actions, &attributes, const_cast<char**>(argv), no_environment) != 0)
    pid = -1;
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

// All that comes until the end. None if that does not come in time: half a line says nothing.
std::optional<std::string> read_all(int fd) {
  const Until end = Until{}.at_most(kLimit);
  std::string text;
  char bytes[4096];
  while (text.size() < kMostText && wait_for(fd, POLLIN, end) == WaitEnd::ready) {
    const ssize_t got = read(fd, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) return text;
    if (got < 0) break;
    text.append(bytes, static_cast<std::size_t>(got));
  }
  return {};
}

// The line that getent(1) prints; "": it is not there, or knows nothing. None: it does not answer.
std::optional<std::string> ask_getent(const char* database, id_t id) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t pid = start_getent(database, std::to_string(id), theirs.get());
  theirs.reset();
  if (pid < 0) return "";
  auto text = read_all(ours.get());
  if (!text) kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return text;
}

// The entry, as `make` copies it.
template <class Database, class Make>
using Made = std::invoke_result_t<Make, const typename Database::Entry&>;

template <class Database, class Make>
std::optional<Made<Database, Make>> in_file(id_t id, const Make& make) {
  const File file(fopen(Database::file, "re"), fclose);
  const auto* entry = file ? find_in<Database>(file.get(), id) : nullptr;
  return entry ? std::optional(make(*entry)) : std::nullopt;
}

template <class Database, class Make>
std::optional<Made<Database, Make>> in_line(std::string text, id_t id, const Make& make) {
  const File line(text.empty() ? nullptr : fmemopen(text.data(), text.size(), "r"), fclose);
  const auto* entry = line ? find_in<Database>(line.get(), id) : nullptr;
  return entry ? std::optional(make(*entry)) : std::nullopt;
}

}  // namespace

std::optional<Account> account_of(uid_t user) {
  const auto make = [](const passwd& entry) {
    return Account{.name = entry.pw_name, .home = entry.pw_dir, .group = entry.pw_gid};
  };
  auto found = in_file<Users>(user, make);
  return found ? found : in_line<Users>(ask_getent(Users::name, user).value_or(""), user, make);
}

std::optional<Group> group_of(gid_t id) {
  const auto make = [](const group& entry) {
    Group made{.name = entry.gr_name};
    for (char** member = entry.gr_mem; *member; ++member) made.members.emplace_back(*member);
    return made;
  };
  const auto line = ask_getent(Groups::name, id);
  if (!line) return std::nullopt;
  return line->empty() ? in_file<Groups>(id, make) : in_line<Groups>(*line, id, make);
}

}  // namespace rlock
