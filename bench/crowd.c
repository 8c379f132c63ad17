// SPDX-License-Identifier: MIT
// crowd sleepers N       starts N processes that sleep until this one ends; prints "there" when all are running
// crowd stampers N FILE  this process and N more in sessions of their own ignore SIGTERM, and keep writing the time of
//                        day to FILE (nanoseconds, one word shared by all)
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static void stamp(atomic_llong *last) {
  for (;;) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    long long ns = now.tv_sec * 1000000000LL + now.tv_nsec, known = atomic_load(last);
    while (known < ns && !atomic_compare_exchange_weak(last, &known, ns)) {
    }
    usleep(500);
  }
}

int main(int count, char **arguments) {
  if (count < 3) return 64;
  int left = atoi(arguments[2]);
  if (strcmp(arguments[1], "sleepers") == 0) {
    for (; left > 0; --left) {
      pid_t pid = fork();
      if (pid < 0) return perror("fork"), 71;
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) pause();
      }
    }
    puts("there");
    fflush(stdout);
    for (;;) pause();
  }
  if (count < 4) return 64;
  int fd = open(arguments[3], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(atomic_llong)) != 0) return 71;
  atomic_llong *last = mmap(NULL, sizeof *last, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (last == MAP_FAILED) return 71;
  signal(SIGTERM, SIG_IGN);
  while (left-- > 0) {
    if (fork() == 0) {
      setsid();
      break;
    }
  }
  stamp(last);
}
