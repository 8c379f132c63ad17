// LD_PRELOAD: what a process says to syslog(3) goes to the file $SYSLOG_SHIM_FILE instead, a line for each message. The
// name is read at the start: the process may wipe its environment.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static char path[4096];

__attribute__((constructor)) static void read_path(void) {
  const char *found = getenv("SYSLOG_SHIM_FILE");
  if (found) snprintf(path, sizeof path, "%s", found);
}

static void write_down(const char *format, va_list arguments) {
  FILE *file = fopen(path, "a");
  if (!file) return;
  vfprintf(file, format, arguments);
  fputc('\n', file);
  fclose(file);
}

void syslog(int priority, const char *format, ...) {
  (void)priority;
  va_list arguments;
  va_start(arguments, format);
  write_down(format, arguments);
  va_end(arguments);
}

void __syslog_chk(int priority, int flag, const char *format, ...) {
  (void)priority;
  (void)flag;
  va_list arguments;
  va_start(arguments, format);
  write_down(format, arguments);
  va_end(arguments);
}
