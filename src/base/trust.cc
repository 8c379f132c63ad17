// SPDX-License-Identifier: MIT
#include "base/trust.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>

#include "base/account.h"
#include "base/text.h"
#include "base/walk_path.h"

namespace rlock {
namespace {

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

// Whether it stands for all users that our user namespace has no id for.
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

// Whether nobody but us is in the group, as where each user has a group of their own and a umask of 002. Not so for
// root: processes of any user may run with root's group, as in containers.
bool only_we_are_in(gid_t group) {
  if (geteuid() == 0) return false;
  const auto us = account_of(geteuid());
  if (!us || us->group != group || is_first_group_of_another(group, geteuid())) return false;
  const auto entry = group_of(group);
  if (!entry || entry->name != us->name) return false;
  return std::ranges::all_of(entry->members, [&](const std::string& member) { return member == us->name; });
}

bool has_access_list(const std::string& path) { return getxattr(path.c_str(), kAccessList, nullptr, 0) > 0; }

bool is_trusted(uid_t owner) { return owner == 0 || owner == geteuid() || unmapped(owner); }

Result<void> owned_by_us(const struct stat& info, const std::string& path) {
  if (is_trusted(info.st_uid)) return {};
  return fail(Error::Code::config, escaped(path) + ": not trusted, because it belongs to another user (id " +
                                       std::to_string(info.st_uid) + "); have its owner be you or root");
}

bool is_mounted_read_only(const std::string& path) {
  struct statvfs info{};
  return statvfs(path.c_str(), &info) == 0 && (info.f_flag & ST_RDONLY);
}

}  // namespace

Result<void> only_ours_to_change(const struct stat& info, const std::string& path) {
  const auto refused = [&](const std::string& why) { return fail(Error::Code::config, escaped(path) + ": " + why); };
  RLOCK_TRY(owned_by_us(info, path));
  const bool sticky_folder = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX);
  const bool others = info.st_mode & S_IWOTH;
  if (!(info.st_mode & (S_IWGRP | S_IWOTH)) || sticky_folder || is_mounted_read_only(path)) return {};
  if (others || !only_we_are_in(info.st_gid) || has_access_list(path)) {
    return refused(std::string("not trusted, because ") + (others ? "others" : "its group") +
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
