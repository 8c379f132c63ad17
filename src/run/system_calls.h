// SPDX-License-Identifier: MIT
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

namespace rlock {

// System calls of Linux 5.3 and before that not every libc declares: musl 1.2 has none of these, and glibc 2.36
// (Debian 12) declares them for C only. Each returns -1 and sets errno on failure.

// pidfd_open(2). A descriptor that stays with this process, whoever gets its number later; readable once it has ended.
inline int open_process(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

// pidfd_send_signal(2), to a process of open_process().
inline int signal_process(int process, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, process, signal, nullptr, 0));
}

}  // namespace rlock
