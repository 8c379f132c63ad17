// A server whose wall clock is set back: LD_PRELOAD this, CLOCK_SHIM_SECONDS=-3600.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static time_t offset(void) {
  const char* text = getenv("CLOCK_SHIM_SECONDS");
  return text ? atoll(text) : 0;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  static int (*real)(struct timeval*, void*);
  if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
  int result = real(now, zone);
  now->tv_sec += offset();
  return result;
}

time_t time(time_t* out) {
  struct timeval now;
  gettimeofday(&now, NULL);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
