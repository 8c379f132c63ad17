// The command of the jobs of `run`: notes when it executes, and whether another one does that may not.
//
//   section HISTORY ID NAME MODE MS PLACE...
//
// It takes a flock(2) on the files PLACE, at once or never, and keeps it until it has ended or was killed, which only
// the kernel can tell exactly. MODE: w, nobody else may be at any PLACE; r, others with r may; s, one PLACE of all must
// be left. HISTORY gets the lines of check.py, each in one write.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static int history;

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_BOOTTIME, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void note(const char* format, ...) {
  char line[512];
  va_list values;
  va_start(values, format);
  const int length = vsnprintf(line, sizeof line, format, values);
  va_end(values);
  if (write(history, line, length) != length) _exit(3);
}

static int take(const char* place, int how) {
  const int file = open(place, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) _exit(3);
  return flock(file, how) == 0;
}

// Those that look at the same time could both miss a free place, so they look one after the other.
static int take_one_of(char** places) {
  char door[512];
  snprintf(door, sizeof door, "%s.door", places[0]);
  const int file = open(door, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || flock(file, LOCK_EX) != 0) _exit(3);
  int taken = 0;
  while (!taken && *places) taken = take(*places++, LOCK_EX | LOCK_NB);
  close(file);
  return taken;
}

static int take_all(char** places, int how) {
  int taken = 1;
  while (*places) taken &= take(*places++, how | LOCK_NB);
  return taken;
}

// Those of several locks come in lines.
static const char* tokens(void) {
  char* text = getenv("RLOCK_TOKEN");
  if (!text || !*text) return "-";
  for (char* at = text; (at = strchr(at, '\n')); at++) *at = '+';
  return text;
}

int main(int count, char** words) {
  if (count < 7) return 64;
  const char *id = words[2], *name = words[3], mode = words[4][0];
  history = open(words[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  const int taken = mode == 's' ? take_one_of(words + 6) : take_all(words + 6, mode == 'r' ? LOCK_SH : LOCK_EX);
  if (!taken) note("overlap %s %s %lld\n", id, name, now());
  note("begin %s %s %s %lld %s\n", id, name, words[4], now(), tokens());
  const long ms = atol(words[5]);
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
  note("end %s %lld\n", id, now());
  return 0;
}
