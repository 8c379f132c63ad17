// SPDX-License-Identifier: MIT
// A kernel, or the filter of a container engine, that refuses a system call (seccomp(2)).
//
//   deny_call NAME ERROR COMMAND...   ERROR: ENOSYS as an old kernel, EPERM as an old engine that does not know the call
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
  const char* name;
  unsigned number;
} kCalls[] = {{"pidfd_open", SYS_pidfd_open},
              {"pidfd_send_signal", SYS_pidfd_send_signal},
              {"close_range", SYS_close_range},
              {"clone3", SYS_clone3},
              {"memfd_create", SYS_memfd_create},
              {"mlock", SYS_mlock},
              {"statx", SYS_statx}};

int main(int count, char** words) {
  if (count < 4) return 64;
  const unsigned error = strcmp(words[2], "EPERM") == 0 ? EPERM : ENOSYS;
  unsigned i = 0;
  while (i < sizeof kCalls / sizeof *kCalls && strcmp(words[1], kCalls[i].name) != 0) ++i;
  if (i == sizeof kCalls / sizeof *kCalls) return 64;
  struct sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kCalls[i].number, 0, 1),
                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    perror("seccomp");
    return 71;
  }
  execvp(words[3], words + 3);
  perror(words[3]);
  return 127;
}
