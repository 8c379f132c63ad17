// SPDX-License-Identifier: MIT
#include "run/inherited.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>

#include "base/process.h"

namespace rlock::run {
namespace {

// Without /proc, only the descriptors that people or supervisors usually pass on are found.
constexpr int kHighestTried = 255;

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
  const UniqueFd folder(open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto add = [&](int fd) {
    if (fd > STDERR_FILENO && fd != folder.get() && is_open(fd)) inherited.descriptors_.push_back(fd);
  };
  if (folder) {
    each_number_in(folder.get(), add);
  } else {
    for (int fd = 0; fd <= kHighestTried; ++fd) add(fd);
  }
  return inherited;
}

bool Inherited::has(int descriptor) const { return std::ranges::find(descriptors_, descriptor) != descriptors_.end(); }

void Inherited::let_go() const {
  for (const int fd : descriptors_) close(fd);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO}) {
    if (is_open(stream)) point_at_null({stream});  // otherwise it stays closed
  }
  folder_.leave();  // "/" always exists
}

}  // namespace rlock::run
