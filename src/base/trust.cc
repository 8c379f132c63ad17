// SPDX-License-Identifier: MIT
#include "base/trust.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include <cstdlib>
#include <fstream>
#include <limits>

#include "base/process.h"
#include "base/text.h"

namespace rlock {
namespace {

// The line that getent(1) prints; "" if it knows nothing or is not installed; none if it does not answer.
std::optional<std::string> ask_getent(const char* database, id_t id) {
  // With its path, because PATH must not decide who we are; without our environment, which may hold a password.
  return output_of({"/usr/bin/getent", {"getent", database, std::to_string(id)}, {}});
}

// The fields of a line of passwd(5) or group(5).
using Entry = std::vector<std::string>;
enum Field : std::uint8_t { kName, kId = 2, kGroup, kMembers = 3, kHome = 5 };

std::vector<Entry> entries_in(const std::string& text) {
  std::vector<Entry> all;
  for (const std::string& line : split(text, '\n')) {
    Entry entry = split(line, ':');
    // Lines that start with + or - are for NIS and name no user.
    if (entry.size() > kGroup && !line.starts_with('+') && !line.starts_with('-')) all.push_back(std::move(entry));
  }
  return all;
}

// Takes only lines apart that may be meant: each job looks for its own account.
std::optional<Entry> entry_of(id_t id, const std::string& text) {
  const std::string field = ":" + std::to_string(id) + ":";
  for (auto at = text.find(field); at != text.npos; at = text.find(field, at + 1)) {
    const auto begin = text.rfind('\n', at) + 1;  // npos + 1 is 0
    for (Entry& entry : entries_in(text.substr(begin, text.find('\n', at) - begin))) {
      if (entry[kId] == std::to_string(id)) return std::move(entry);
    }
  }
  return {};
}

// Whether this is the id of all users without one in our user namespace, even if a user has it there, too.
bool unmapped(uid_t user) {
  static const unsigned overflow = [] {
    unsigned number = 0;
    return std::ifstream("/proc/sys/kernel/overflowuid") >> number ? number : 65534;
  }();
  if (user != overflow) return false;
  unsigned first = 0, outside = 0, count = 0;
  std::ifstream map("/proc/self/uid_map");
  if (!map) return false;
  while (map >> first >> outside >> count) {
    if (first == 0 && count == std::numeric_limits<uid_t>::max()) return false;  // it has all users
  }
  return true;
}

// Whether the group is the primary one of another user, as far as is known.
bool is_of_another(gid_t group, uid_t user) {
  const auto users = read_file("/etc/passwd");
  return !users || std::ranges::any_of(entries_in(*users), [&](const Entry& one) {
    return one[kGroup] == std::to_string(group) && one[kId] != std::to_string(user);
  });
}

// Whether the group is our primary one, has our name, and nobody else is in it, as on systems where each user has a
// group of their own and umask 002. Asks getent(1) first, because a group of /etc/group may have more members
// elsewhere; only /etc/passwd can tell whose primary group it is. Never true for root, because in containers processes
// of any user may have root's group.
bool only_we_are_in(gid_t group) {
  const uid_t user = geteuid();
  const auto us = account_of(user);
  if (user == 0 || !us || us->group != group) return false;
  if (is_of_another(group, user)) return false;
  const auto line = ask_getent("group", group);
  if (!line) return false;
  const auto entry = entry_of(group, line->empty() ? read_file("/etc/group").value_or("") : *line);
  if (!entry || (*entry)[kName] != us->name) return false;
  return std::ranges::all_of(split((*entry)[kMembers], ','), [&](const std::string& one) { return one == us->name; });
}

// An access control list (acl(5)): then the group bits of the mode are the most that it allows, not the group's own.
bool has_access_list(const std::string& path) {
  return getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) > 0;
}

// Where only root puts files and links.
bool is_roots_place(const std::string& path) {
  constexpr std::string_view places[] = {"/etc/", "/usr/", "/run/secrets/"};
  return path.find_last_of('/') == 0 ||
         std::ranges::any_of(places, [&](std::string_view place) { return path.starts_with(place); });
}

// Whether an owner without an id is root. Folders are only on the way to what is judged itself.
bool stands_for_root(const struct stat& info, const std::string& path) {
  if (S_ISDIR(info.st_mode)) return true;
  if (S_ISLNK(info.st_mode)) return is_roots_place(path);
  char whole[PATH_MAX];
  return realpath(path.c_str(), whole) && is_roots_place(whole);
}

Result<void> owned_by_us(const struct stat& info, const std::string& path) {
  const bool known = !unmapped(info.st_uid);  // even our own id may stand for all others
  if (info.st_uid == 0 || (known && info.st_uid == geteuid())) return {};
  if (!known && stands_for_root(info, path)) return {};
  return fail(Error::Code::config,
              escaped(path) + ": not trusted, because it belongs to another user (id " + std::to_string(info.st_uid) +
                  "); it must belong to you or root" +
                  (known ? "" : ", whom rlock knows in this user namespace only in /etc, /usr and /run/secrets"));
}

constexpr int kMostLinks = 40;  // the kernel's limit
constexpr int kLook = O_PATH | O_NOFOLLOW | O_CLOEXEC, kEnter = O_PATH | O_DIRECTORY | O_CLOEXEC;

std::unexpected<Error> failed(int number) { return fail(Error::Code::system, errno_text(number)); }

bool is_on(const UniqueFd& file, long file_system) {
  struct statfs info{};
  return fstatfs(file.get(), &info) == 0 && info.f_type == file_system;
}

// Judges each folder and link on the way along an absolute path, before it is used, up to the first name that does not
// exist. Links in /proc to open files of processes are followed by the path that they show; if they show none, they
// lead to nothing. Errors: config; system, without context, if a folder cannot be entered or there are more links than
// the kernel follows.
class Walk {
 public:
  explicit Walk(const std::string& path) : rest_(path) {}

  Result<void> run() {
    RLOCK_TRY(begin());
    for (;;) {
      rest_.erase(0, rest_.find_first_not_of('/'));
      const std::string name = rest_.substr(0, rest_.find('/'));
      rest_.erase(0, name.size());
      if (name.empty() || !RLOCK_TRY(step(name))) return {};
    }
  }

 private:
  // Starts with the rest of the path, which may be absolute.
  Result<void> begin() {
    if (!rest_.starts_with('/')) return {};  // the target of a link, relative to its folder
    path_ = "/";
    folder_ = UniqueFd(open(path_.c_str(), kEnter));
    if (!folder_) return failed(errno);
    return {};
  }

  // False: the path ends here.
  Result<bool> step(const std::string& name) {
    const std::string path = path_ + (path_.ends_with('/') ? "" : "/") + name;
    struct stat folder{}, there{};
    if (fstat(folder_.get(), &folder) != 0) return failed(errno);
    RLOCK_TRY(only_ours_to_change(folder, path_));
    UniqueFd next(openat(folder_.get(), name.c_str(), kLook));
    if (!next && errno == ENOENT) return false;
    if (!next || fstat(next.get(), &there) != 0) return failed(errno);
    if (S_ISLNK(there.st_mode)) {
      if (!is_on(folder_, PROC_SUPER_MAGIC)) RLOCK_TRY(owned_by_us(there, path));
      RLOCK_TRY(follow(next));
      return true;
    }
    if (rest_.empty()) return false;
    RLOCK_TRY(enter(std::move(next), name, there));
    path_ = path;
    return true;
  }

  // `next` is what openat(2) found under that name.
  Result<void> enter(UniqueFd next, const std::string& name, const struct stat& there) {
    // O_PATH does not mount a file system on demand; a path that goes through the folder does (open(2)).
    if (is_on(next, AUTOFS_SUPER_MAGIC)) {
      next = UniqueFd(openat(folder_.get(), (name + "/.").c_str(), kEnter));
      if (!next) return failed(errno);
    } else if (!S_ISDIR(there.st_mode)) {
      return failed(ENOTDIR);
    }
    folder_ = std::move(next);
    return {};
  }

  Result<void> follow(const UniqueFd& link) {
    char text[PATH_MAX];
    const ssize_t length = readlinkat(link.get(), "", text, sizeof text);
    if (length < 0) return failed(errno);
    if (++links_ > kMostLinks) return failed(ELOOP);
    rest_.insert(0, text, static_cast<std::size_t>(length));
    return begin();
  }

  std::string rest_, path_;  // what is left of the path; the path of `folder_`
  UniqueFd folder_;
  int links_ = 0;
};

bool is_mounted_read_only(const std::string& path) {
  struct statvfs info{};
  return statvfs(path.c_str(), &info) == 0 && (info.f_flag & ST_RDONLY);
}

}  // namespace

std::optional<Account> account_of(uid_t user) {
  auto found = entry_of(user, read_file("/etc/passwd").value_or(""));
  if (!found) found = entry_of(user, ask_getent("passwd", user).value_or(""));
  if (!found || found->size() <= kHome) return {};
  const auto group = static_cast<gid_t>(whole_number((*found)[kGroup]).value_or(-1));
  return Account{.name = (*found)[kName], .home = (*found)[kHome], .group = group};
}

bool same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

Result<void> only_ours_to_change(const struct stat& info, const std::string& path) {
  RLOCK_TRY(owned_by_us(info, path));
  const bool sticky_folder = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX);
  const bool others = info.st_mode & S_IWOTH;
  if (!(info.st_mode & (S_IWGRP | S_IWOTH)) || sticky_folder || is_mounted_read_only(path)) return {};
  if (others || !only_we_are_in(info.st_gid) || has_access_list(path)) {
    return fail(Error::Code::config, escaped(path) + ": not trusted, because " + (others ? "others" : "its group") +
                                         " may write to it; chmod go-w " + escaped(shell_word(path)));
  }
  return {};
}

Result<void> only_ours_to_change(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) == 0) return only_ours_to_change(info, path);
  if (errno == ENOENT) return {};
  return std::unexpected(system_error(escaped(path)));
}

Result<void> only_ours_to_lead_to(const std::string& path) {
  const auto nobody_can_tell = [](const std::string& why) {
    return fail(Error::Code::config, "cannot tell which folder it is in: " + why);
  };
  std::string whole = path;
  if (!path.starts_with('/')) {
    char here[PATH_MAX];
    if (!getcwd(here, sizeof here)) return nobody_can_tell(errno_text(errno));
    whole = std::string(here) + "/" + path;
  }
  auto walked = Walk(whole).run();
  if (!walked && walked.error().code == Error::Code::system) return nobody_can_tell(walked.error().message);
  return walked;
}

}  // namespace rlock
