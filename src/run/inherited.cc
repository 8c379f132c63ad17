// SPDX-License-Identifier: MIT
#include "run/inherited.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>

#include "base/unique_fd.h"

namespace rlock::run {
namespace {

// Without /proc: those that anybody opens by hand or a supervisor passes on.
constexpr int kHighestTried = 255;

std::vector<int> candidates() {
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

// A stream that we were started without stays closed.
void leave_standard_streams() {
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO}) {
    if (null && fcntl(stream, F_GETFD) >= 0) dup2(null.get(), stream);
  }
}

}  // namespace

Inherited Inherited::look() {
  Inherited inherited;
  inherited.folder_ = Folder::current();
  inherited.descriptors_ = candidates();
  std::erase_if(inherited.descriptors_, [](int fd) { return fcntl(fd, F_GETFD) < 0; });
  return inherited;
}

void Inherited::let_go() const {
  for (const int fd : descriptors_) close(fd);
  leave_standard_streams();
  folder_.leave();  // there is always a root
}

}  // namespace rlock::run
