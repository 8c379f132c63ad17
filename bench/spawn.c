// SPDX-License-Identifier: MIT
// spawn COMMAND [ARG...]: runs a command with /dev/null as standard input and output, and prints a line
// "TIME CPU RSS STATUS": ns from its start until its end is seen; µs of CPU time of it and of its descendants that were
// waited for; the peak memory of the largest of them in KiB; its exit status.
//
//     cc -O2 -static -o spawn spawn.c
//
// A process starts with the peak memory of its parent (getrusage(2)), so the parent is a static C program, which is
// smaller than any command that is measured.
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char** environ;

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long long microseconds(struct timeval time) { return time.tv_sec * 1000000LL + time.tv_usec; }

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
  posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_RDWR, 0);
  pid_t pid;
  int status;
  struct rusage used;
  const long long began = now();
  if (posix_spawnp(&pid, argv[1], &files, NULL, argv + 1, environ) != 0) return 127;
  if (wait4(pid, &status, 0, &used) != pid) return 71;
  const long long took = now() - began;
  printf("%lld %lld %ld %d\n", took, microseconds(used.ru_utime) + microseconds(used.ru_stime), used.ru_maxrss,
         WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  return 0;
}
