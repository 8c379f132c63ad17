// A server whose wall clock is wrong: LD_PRELOAD this. CLOCK_SHIM_FILE holds by how many milliseconds, and is read
// each time, so that the clock can be stepped while the server runs. It stays open: write into it, do not replace it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset_ms(void) {
  static int file = -1;
  const char* path = file < 0 ? getenv("CLOCK_SHIM_FILE") : NULL;
  char text[32] = "";
  if (path) file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t length = pread(file, text, sizeof text - 1, 0);
  return length > 0 ? atol(text) : 0;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  static int (*real)(struct timeval*, void*);
  if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
  const int result = real(now, zone);
  const long long us = (long long)now->tv_sec * 1000000 + now->tv_usec + offset_ms() * 1000LL;
  now->tv_sec = us / 1000000;
  now->tv_usec = us % 1000000;
  return result;
}

time_t time(time_t* out) {
  struct timeval now;
  gettimeofday(&now, NULL);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
