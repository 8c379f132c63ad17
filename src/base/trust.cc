// SPDX-License-Identifier: MIT
#include "base/trust.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "base/account.h"
#include "base/text.h"

namespace rlock {
namespace {

constexpr int kMostLinks = 40;  // the kernel's limit
constexpr int kLook = O_PATH | O_NOFOLLOW | O_CLOEXEC, kEnter = O_PATH | O_DIRECTORY | O_CLOEXEC;

std::unexpected<Error> failed(int number) { return fail(Error::Code::system, errno_text(number)); }

bool is_on(const UniqueFd& file, long file_system) {
  struct statfs info{};
  return fstatfs(file.get(), &info) == 0 && info.f_type == file_system;
}

class Walk {
 public:
  Walk(const std::string& path, ProcLinks proc_links, const JudgeStep& judge)
      : rest_(path), proc_links_(proc_links), judge_(judge) {}

  Result<PathEnd> run() {
    RLOCK_TRY(begin());
    for (;;) {
      const std::string name = next_name();
      if (name.empty()) return PathEnd{std::move(folder_), "", {}, is_on(folder_, PROC_SUPER_MAGIC)};
      if (auto end = RLOCK_TRY(step(name))) return *std::move(end);
    }
  }

 private:
  // Starts with the rest of the path, which may be absolute.
  Result<void> begin() {
    if (rest_.starts_with('/')) {
      path_ = "/";
    } else if (path_.empty()) {
      path_ = ".";
    } else {
      return {};  // the target of a link, relative to its folder
    }
    folder_ = UniqueFd(open(path_.c_str(), kEnter));
    if (!folder_) return failed(errno);
    return {};
  }

  // Takes the next name from the rest of the path.
  std::string next_name() {
    rest_.erase(0, rest_.find_first_not_of('/'));
    const std::string name = rest_.substr(0, rest_.find('/'));
    rest_.erase(0, name.size());
    return name;
  }

  Result<std::optional<PathEnd>> step(const std::string& name) {
    const bool last = rest_.empty(), in_proc = is_on(folder_, PROC_SUPER_MAGIC);
    const std::string path = path_ + (path_.ends_with('/') ? "" : "/") + name;
    struct stat folder{}, there{};
    if (fstat(folder_.get(), &folder) != 0) return failed(errno);
    RLOCK_TRY(judge_({path_, folder}));
    UniqueFd next(openat(folder_.get(), name.c_str(), kLook));
    if (!next && errno == ENOENT) return PathEnd{std::move(folder_), name, {}, in_proc, !last};
    if (!next || fstat(next.get(), &there) != 0) return failed(errno);
    if (S_ISLNK(there.st_mode) && (!in_proc || proc_links_ == ProcLinks::by_path)) {
      if (!in_proc) RLOCK_TRY(judge_({path, folder, &there}));
      RLOCK_TRY(follow(next));
      return std::nullopt;
    }
    if (last) return PathEnd{std::move(folder_), name, there, in_proc};
    RLOCK_TRY(enter(std::move(next), name, there));
    path_ = path;
    return std::nullopt;
  }

  // `next` is what openat(2) found under that name.
  Result<void> enter(UniqueFd next, const std::string& name, const struct stat& there) {
    // O_PATH does not mount a file system on demand; a path that goes through the folder does (open(2)).
    if (S_ISLNK(there.st_mode) || is_on(next, AUTOFS_SUPER_MAGIC)) {
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
  const ProcLinks proc_links_;
  const JudgeStep& judge_;
};

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

// Whether this is the id that stands for all users without an id in our user namespace.
bool unmapped(uid_t user) {
  unsigned overflow = 0, first = 0, outside = 0, count = 0;
  const File id(fopen("/proc/sys/kernel/overflowuid", "re"), fclose);
  if (!id || fscanf(id.get(), "%u", &overflow) != 1 || user != overflow) return false;
  const File map(fopen("/proc/self/uid_map", "re"), fclose);
  if (!map) return false;
  while (fscanf(map.get(), "%u %u %u", &first, &outside, &count) == 3) {
    if (user >= first && user - first < count) return false;
  }
  return true;
}

// Whether nobody but us is in the group, as on systems where each user has a group of their own and umask 002. Never
// true for root, because in containers processes of any user may have root's group.
bool only_we_are_in(gid_t group) {
  if (geteuid() == 0) return false;
  const auto us = account_of(geteuid());
  if (!us || us->group != group || is_first_group_of_another(group, geteuid())) return false;
  const auto entry = group_of(group);
  if (!entry || entry->name != us->name) return false;
  return std::ranges::all_of(entry->members, [&](const std::string& member) { return member == us->name; });
}

bool has_access_list(const std::string& path) { return getxattr(path.c_str(), kAccessList, nullptr, 0) > 0; }

Result<void> owned_by_us(const struct stat& info, const std::string& path) {
  if (info.st_uid == 0 || info.st_uid == geteuid() || unmapped(info.st_uid)) return {};
  return fail(Error::Code::config, escaped(path) + ": not trusted, because it belongs to another user (id " +
                                       std::to_string(info.st_uid) + "); have its owner be you or root");
}

bool is_mounted_read_only(const std::string& path) {
  struct statvfs info{};
  return statvfs(path.c_str(), &info) == 0 && (info.f_flag & ST_RDONLY);
}

}  // namespace

Result<PathEnd> walk_path(const std::string& path, ProcLinks proc_links, const JudgeStep& judge) {
  if (path.empty()) return failed(ENOENT);
  return Walk(path, proc_links, judge).run();
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
  auto end = walk_path(whole, ProcLinks::by_path, [](const PathStep& step) {
    return step.link ? owned_by_us(*step.link, step.path) : only_ours_to_change(step.folder, step.path);
  });
  if (end) return {};
  if (end.error().code == Error::Code::system) return nobody_can_tell(end.error().message);
  return std::unexpected(std::move(end).error());
}

}  // namespace rlock
