// SPDX-License-Identifier: MIT
#include "run/close_fds.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>

namespace rlock::run {
namespace {

constexpr unsigned kUsual = 1023;  // the limit that most processes have, less one

// The entries of the system call are those of readdir(3) on all systems of 64 bits; readdir itself allocates memory, and
// another thread may have held the allocator's lock at the fork.
static_assert(offsetof(dirent, d_name) == 19 && offsetof(dirent, d_reclen) == 16);

int open_list() { return open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

// Calls `found` with each descriptor that /proc shows in `folder`. To close one meanwhile lets none be passed over: the
// place in the list is a number of a descriptor.
template <class Found>
void each_descriptor(int folder, Found found) {
  alignas(dirent) char entries[2048];
  for (;;) {
    const long length = syscall(SYS_getdents64, folder, entries, sizeof entries);
    if (length <= 0) return;
    for (long at = 0; at < length;) {
      const auto& entry = *reinterpret_cast<const dirent*>(entries + at);
      at += entry.d_reclen;
      unsigned fd = 0;
      const char* end = entry.d_name + std::strlen(entry.d_name);
      if (std::from_chars(entry.d_name, end, fd).ptr == end) found(fd);
    }
  }
}

}  // namespace

void close_fds(unsigned first, unsigned last) {
  if (syscall(SYS_close_range, first, last, 0) == 0) return;
  int folder = open_list();
  if (folder < 0 && (errno == EMFILE || errno == ENFILE)) {
    close(static_cast<int>(first));
    folder = open_list();
  }
  if (folder < 0) {
    for (unsigned fd = first; fd <= std::min(last, kUsual); ++fd) close(static_cast<int>(fd));
    return;
  }
  each_descriptor(folder, [&](unsigned fd) {
    if (fd >= first && fd <= last && fd != static_cast<unsigned>(folder)) close(static_cast<int>(fd));
  });
  close(folder);
}

}  // namespace rlock::run
