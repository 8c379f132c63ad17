// A server that believes to have been up for AGED_SECONDS already when it starts: LD_PRELOAD this. A redis-server notes
// its start by time(2), and tells the time otherwise by gettimeofday(2).
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

time_t time(time_t* out) {
  struct timeval now;
  gettimeofday(&now, NULL);
  const char* age = getenv("AGED_SECONDS");
  const time_t then = now.tv_sec - (age ? atol(age) : 0);
  if (out) *out = then;
  return then;
}
