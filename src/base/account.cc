// SPDX-License-Identifier: MIT
#include "base/account.h"

#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/process.h"
#include "base/wait.h"

namespace rlock {
namespace {

constexpr milliseconds kLimit = 2s;
constexpr std::size_t kMostText = std::size_t{1024} * 1024;

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

// A database such as passwd(5): `next` reads an entry, and the other two are the members with its number and name.
template <auto next, auto number, auto name>
struct Database {
  const char* file;
  const char* getent;  // what getent(1) calls it
};
constexpr Database<fgetpwent, &passwd::pw_uid, &passwd::pw_name> kUsers{"/etc/passwd", "passwd"};
constexpr Database<fgetgrent, &group::gr_gid, &group::gr_name> kGroups{"/etc/group", "group"};

// The entry, as `make` copies it; none if it is not in `file`, which may be null. Lines that start with + or - are for
// NIS and name no user.
template <auto next, auto number, auto name, class Make>
auto copy_of(const Database<next, number, name>&, const File& file, id_t id, const Make& make)
    -> std::optional<decltype(make(*next(std::declval<FILE*>())))> {
  while (const auto* entry = file ? next(file.get()) : nullptr) {
    const char first = *(entry->*name);
    if (entry->*number == id && first != '+' && first != '-') return make(*entry);
  }
  return {};
}

// Reads up to the end. None if the end does not come in time, because half a line is of no use.
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

// The line that getent(1) prints; "" if it knows nothing or is not installed; none if it does not answer.
std::optional<std::string> ask_getent(const char* database, id_t id) {
  auto output = Pipe::make();
  if (!output) return {};
  // With its full path, because PATH must not decide who we are; and without our environment, which may hold a
  // password.
  const Program getent("/usr/bin/getent", {"getent", database, std::to_string(id)}, {});
  const auto pid = spawn([&] {
    dup2(output->writer.get(), STDOUT_FILENO);
    point_at_null({STDERR_FILENO});
    let_all_signals_through();
    getent.exec();
  });
  output->writer.reset();
  if (!pid) return "";
  auto text = read_all(output->reader.get());
  if (!text) kill(*pid, SIGKILL);
  reap(*pid);
  return text;
}

File open_file(const char* path) { return {fopen(path, "re"), fclose}; }

// REQUIRES: `text` lives as long as the result.
File open_text(std::string& text) { return {text.empty() ? nullptr : fmemopen(text.data(), text.size(), "r"), fclose}; }

}  // namespace

bool is_first_group_of_another(gid_t group, uid_t user) {
  const File file = open_file("/etc/passwd");
  while (const passwd* entry = file ? fgetpwent(file.get()) : nullptr) {
    if (entry->pw_gid == group && entry->pw_uid != user) return true;
  }
  return false;
}

std::optional<Account> account_of(uid_t user) {
  const auto make = [](const passwd& entry) {
    return Account{.name = entry.pw_name, .home = entry.pw_dir, .group = entry.pw_gid};
  };
  if (auto found = copy_of(kUsers, open_file(kUsers.file), user, make)) return found;
  std::string line = ask_getent(kUsers.getent, user).value_or("");
  return copy_of(kUsers, open_text(line), user, make);
}

std::optional<Group> group_of(gid_t id) {
  const auto make = [](const group& entry) {
    Group made{.name = entry.gr_name};
    for (char** member = entry.gr_mem; *member; ++member) made.members.emplace_back(*member);
    return made;
  };
  auto line = ask_getent(kGroups.getent, id);
  if (!line) return {};
  return copy_of(kGroups, line->empty() ? open_file(kGroups.file) : open_text(*line), id, make);
}

}  // namespace rlock
