// SPDX-License-Identifier: MIT
#include "run/inherited.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <memory>

#include "base/process.h"

namespace rlock::run {
namespace {

// Without /proc: those that anybody opens by hand or a supervisor passes on.
constexpr int kHighestTried = 255;

std::vector<int> possible_descriptors() {
  std::vector<int> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/fd"), closedir);
  if (!folder) {
    for (int fd = STDERR_FILENO + 1; fd <= kHighestTried; ++fd) found.push_back(fd);
    return found;
  }
  while (const dirent* entry = readdir(folder.get())) {
    int fd = -1;
    std::from_chars(entry->d_name, entry->d_name + std::strlen(entry->d_name), fd);
    if (fd > STDERR_FILENO && fd != dirfd(folder.get())) found.push_back(fd);
  }
  return found;
}

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

}  // namespace

Folder Folder::current() {
  Folder folder;
  char path[PATH_MAX];
  if (getcwd(path, sizeof path)) folder.path_ = path;
  folder.stays_ = access(folder.path_.c_str(), X_OK) != 0;
  return folder;
}

bool Folder::leave() const { return stays_ || chdir("/") == 0; }

bool Folder::enter() const { return stays_ || chdir(path_.c_str()) == 0; }

Inherited Inherited::look() {
  Inherited inherited;
  inherited.folder_ = Folder::current();
  inherited.descriptors_ = possible_descriptors();
  std::erase_if(inherited.descriptors_, [](int fd) { return !is_open(fd); });
  return inherited;
}

void Inherited::let_go() const {
  for (const int fd : descriptors_) close(fd);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO}) {
    if (is_open(stream)) point_at_null({stream});  // one that we were started without stays closed
  }
  folder_.leave();  // there is always a root
}

}  // namespace rlock::run
