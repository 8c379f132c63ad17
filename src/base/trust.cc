// SPDX-License-Identifier: MIT
#include "base/trust.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/text.h"

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

}  // namespace

Result<void> only_ours_to_change(const struct stat& info, const std::string& path) {
  const auto refused = [&](const std::string& why) { return fail(Error::Code::config, escaped(path) + ": " + why); };
  if (info.st_uid != 0 && info.st_uid != geteuid() && !unmapped(info.st_uid)) {
    return refused("not trusted, because it belongs to another user (id " + std::to_string(info.st_uid) +
                   "); have its owner be you or root");
  }
  const bool sticky_folder = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX);
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) && !sticky_folder) {
    return refused(std::string("not trusted, because ") + (info.st_mode & S_IWOTH ? "others" : "its group") +
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

}  // namespace rlock
