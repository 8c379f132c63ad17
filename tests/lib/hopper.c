// SPDX-License-Identifier: MIT
// A tree that keeps forking. Each hopper sleeps, forks, and ends, so that no pid of it lives for long.
//
//   hopper FILE COUNT PERIOD_MS MOST   COUNT of them, until told to end, or they have forked MOST times, so that
//                                      the test cannot run out of pids; this process waits forever
//   hopper FILE read                   prints when one of them ran last, in ms on CLOCK_BOOTTIME, and how often they forked
//   hopper FILE end                    they end
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct page {
  atomic_llong last_ms, forks;
  atomic_int end;
};

static void run(struct page *page) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  long long ms = now.tv_sec * 1000LL + now.tv_nsec / 1000000, last = atomic_load(&page->last_ms);
  while (last < ms && !atomic_compare_exchange_weak(&page->last_ms, &last, ms)) {
  }
}

int main(int count, char **arguments) {
  if (count < 3) return 64;
  int fd = open(arguments[1], O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(struct page)) != 0) return 71;
  struct page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) return 71;
  if (strcmp(arguments[2], "read") == 0) return printf("%lld %lld\n", page->last_ms, page->forks) < 0;
  if (strcmp(arguments[2], "end") == 0) return atomic_store(&page->end, 1), 0;

  if (count < 5) return 64;
  for (int left = atoi(arguments[2]), period = atoi(arguments[3]), most = atoi(arguments[4]); left > 0; --left) {
    if (fork() > 0) continue;
    while (!atomic_load(&page->end)) {
      run(page);
      usleep(period * 1000);
      if (atomic_load(&page->forks) >= most) continue;
      pid_t pid = fork();
      if (pid > 0) _exit(0);
      if (pid == 0) atomic_fetch_add(&page->forks, 1);
    }
    _exit(0);
  }
  for (;;) pause();
}
