// SPDX-License-Identifier: MIT
// Functions of libc that fail once, linked into rlock in front of libc: see nth_call.py, which runs the result.
//
// A thread of a process has a name: 0 is the first one of the process that was started, 0.2 the second process that 0
// has forked, 0.2+1 the first thread that 0.2 has created. Each counts its calls, and its allocations, from 1.
//
//   FAIL_AT="0.2 calls 17"   makes the 17th call of that thread fail, or the allocation ("memory")
//   FAIL_LOG=FILE         says what has failed, as "failed socket", and names each thread, as "thread 0.2"
//
// Both are read when the program starts. A call that cannot fail for any reason but a wrong argument is not listed, and
// a program that the process executes has the real functions.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char wanted_thread[64], wanted_kind[16], log_file[256];
static long wanted_number;

static __thread char thread_name[64];
static __thread int forks, threads;
static __thread long calls, allocations;

// By system calls only, because this must neither fail nor count. A line is one write, so lines stay whole.
static void note(const char* what, const char* which) {
  const int before = errno;
  const long file = log_file[0] ? syscall(SYS_openat, AT_FDCWD, log_file, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
  if (file >= 0) {
    char line[128];
    char* end = stpcpy(stpcpy(stpcpy(stpcpy(line, what), " "), which), "\n");
    syscall(SYS_write, file, line, end - line);
    syscall(SYS_close, file);
  }
  errno = before;
}

static void become(const char* parent, char separator, int number) {
  char name[sizeof thread_name];
  snprintf(name, sizeof name, "%s%c%d", parent, separator, number);
  strcpy(thread_name, name);
  forks = threads = 0;
  calls = allocations = 0;
  note("thread", thread_name);
}

__attribute__((constructor)) static void begin(void) {
  const char* wanted = getenv("FAIL_AT");
  const char* file = getenv("FAIL_LOG");
  if (!wanted || !file || strlen(file) >= sizeof log_file) return;
  if (sscanf(wanted, "%63s %15s %ld", wanted_thread, wanted_kind, &wanted_number) != 3) return;
  strcpy(log_file, file);
  strcpy(thread_name, "0");
  note("thread", thread_name);
}

static int fails_now(const char* kind, long* count, const char* name, int error) {
  if (!thread_name[0]) return 0;
  ++*count;
  if (*count != wanted_number || strcmp(kind, wanted_kind) != 0 || strcmp(thread_name, wanted_thread) != 0) return 0;
  note("failed", name);
  errno = error;
  return 1;
}

#define FAILS(name, error) fails_now("calls", &calls, name, error)
#define REAL(name)               \
  static __typeof__(name)* real; \
  if (!real) real = dlsym(RTLD_NEXT, #name);

#define MAY_FAIL(type, name, error, parameters, arguments)    \
  type name parameters {                                      \
    REAL(name)                                                \
    return FAILS(#name, error) ? (type) - 1 : real arguments; \
  }
#define MAY_RETURN_NULL(type, name, error, parameters, arguments) \
  type name parameters {                                          \
    REAL(name)                                                    \
    return FAILS(#name, error) ? NULL : real arguments;           \
  }

// Descriptors and memory run out.
MAY_FAIL(int, pipe2, EMFILE, (int ends[2], int flags), (ends, flags))
MAY_FAIL(int, socket, EMFILE, (int domain, int type, int protocol), (domain, type, protocol))
MAY_FAIL(int, socketpair, EMFILE, (int domain, int type, int protocol, int ends[2]), (domain, type, protocol, ends))
MAY_FAIL(int, epoll_create1, EMFILE, (int flags), (flags))
MAY_FAIL(int, eventfd, EMFILE, (unsigned first, int flags), (first, flags))
MAY_FAIL(int, signalfd, EMFILE, (int fd, const void* mask, int flags), (fd, mask, flags))
MAY_FAIL(int, timerfd_create, EMFILE, (int clock, int flags), (clock, flags))
MAY_FAIL(int, dup2, EMFILE, (int from, int to), (from, to))
MAY_RETURN_NULL(FILE*, fopen, EMFILE, (const char* path, const char* mode), (path, mode))
MAY_RETURN_NULL(void*, opendir, EMFILE, (const char* path), (path))
void* mmap(void* at, size_t length, int protection, int flags, int fd, off_t offset) {
  REAL(mmap)
  return FAILS("mmap", ENOMEM) ? MAP_FAILED : real(at, length, protection, flags, fd, offset);
}
MAY_FAIL(int, mlock, ENOMEM, (const void* at, size_t length), (at, length))
MAY_FAIL(int, madvise, ENOMEM, (void* at, size_t length, int advice), (at, length, advice))
MAY_FAIL(int, epoll_ctl, ENOMEM, (int set, int action, int fd, void* event), (set, action, fd, event))
MAY_FAIL(ssize_t, readv, ENOMEM, (int fd, const struct iovec* parts, int count), (fd, parts, count))
MAY_FAIL(ssize_t, writev, ENOBUFS, (int fd, const struct iovec* parts, int count), (fd, parts, count))
MAY_FAIL(ssize_t, sendmsg, ENOBUFS, (int fd, const struct msghdr* message, int flags), (fd, message, flags))
MAY_FAIL(ssize_t, recvmsg, ENOMEM, (int fd, struct msghdr* message, int flags), (fd, message, flags))

// A connection ends.
MAY_FAIL(int, connect, ECONNREFUSED, (int fd, const struct sockaddr* to, socklen_t length), (fd, to, length))
MAY_FAIL(ssize_t, recv, ECONNRESET, (int fd, void* bytes, size_t length, int flags), (fd, bytes, length, flags))

// rlock finds out by this whether it writes to a socket.
ssize_t send(int fd, const void* bytes, size_t length, int flags) {
  REAL(send)
  struct stat about;
  if (fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode) && FAILS("send", ECONNRESET)) return -1;
  return real(fd, bytes, length, flags);
}

// A signal interrupts.
MAY_FAIL(ssize_t, read, EINTR, (int fd, void* bytes, size_t length), (fd, bytes, length))
MAY_FAIL(ssize_t, write, EINTR, (int fd, const void* bytes, size_t length), (fd, bytes, length))
MAY_FAIL(int, poll, EINTR, (struct pollfd * fds, nfds_t count, int timeout), (fds, count, timeout))
MAY_FAIL(int, epoll_wait, EINTR, (int set, void* events, int most, int timeout), (set, events, most, timeout))
MAY_FAIL(pid_t, waitpid, EINTR, (pid_t pid, int* status, int options), (pid, status, options))

// A filter, or the kernel, refuses.
MAY_FAIL(int, setpgid, EPERM, (pid_t pid, pid_t group), (pid, group))
MAY_FAIL(pid_t, setsid, EPERM, (void), ())
MAY_FAIL(ssize_t, getrandom, ENOSYS, (void* bytes, size_t length, unsigned flags), (bytes, length, flags))
MAY_FAIL(ssize_t, readlink, EACCES, (const char* path, char* text, size_t length), (path, text, length))
MAY_RETURN_NULL(char*, getcwd, EACCES, (char* text, size_t length), (text, length))
MAY_FAIL(int, gethostname, EPERM, (char* text, size_t length), (text, length))

int prctl(int what, ...) {
  static int (*real)(int, ...);
  if (!real) real = (int (*)(int, ...))dlsym(RTLD_NEXT, "prctl");
  va_list more;
  va_start(more, what);
  unsigned long word[4];
  for (int i = 0; i < 4; ++i) word[i] = va_arg(more, unsigned long);
  va_end(more);
  return FAILS("prctl", EPERM) ? -1 : real(what, word[0], word[1], word[2], word[3]);
}

int open(const char* path, int flags, ...) {
  static int (*real)(const char*, int, ...);
  if (!real) real = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open");
  va_list more;
  va_start(more, flags);
  const unsigned mode = va_arg(more, unsigned);
  va_end(more);
  return FAILS("open", EMFILE) ? -1 : real(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  static int (*real)(int, const char*, int, ...);
  if (!real) real = (int (*)(int, const char*, int, ...))dlsym(RTLD_NEXT, "openat");
  va_list more;
  va_start(more, flags);
  const unsigned mode = va_arg(more, unsigned);
  va_end(more);
  return FAILS("openat", EMFILE) ? -1 : real(folder, path, flags, mode);
}

int fcntl(int fd, int what, ...) {
  static int (*real)(int, int, ...);
  if (!real) real = (int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl");
  va_list more;
  va_start(more, what);
  const unsigned long word = va_arg(more, unsigned long);
  va_end(more);
  if (what == F_DUPFD_CLOEXEC && FAILS("fcntl", EMFILE)) return -1;
  return real(fd, what, word);
}

// The system calls for which rlock uses no function of libc. Masks and actions of signals cannot be refused.
static const struct {
  long number;
  const char* name;
  int error;
} raw[] = {{SYS_pidfd_open, "pidfd_open", EMFILE},
           {SYS_pidfd_send_signal, "pidfd_send_signal", EPERM},
           {SYS_close_range, "close_range", ENOSYS},
           {SYS_getdents64, "getdents64", ENOENT},
           {SYS_clone, "clone", EAGAIN}};

long syscall(long number, ...) {
  static long (*real)(long, ...);
  if (!real) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  va_list more;
  va_start(more, number);
  long word[6];
  for (int i = 0; i < 6; ++i) word[i] = va_arg(more, long);
  va_end(more);
  for (unsigned i = 0; i < sizeof raw / sizeof *raw; ++i) {
    if (number == raw[i].number && FAILS(raw[i].name, raw[i].error)) return -1;
  }
  return real(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}

int execvpe(const char* file, char* const words[], char* const variables[]) {
  REAL(execvpe)
  return FAILS("execvpe", ENOMEM) ? -1 : real(file, words, variables);
}

pid_t fork(void) {
  REAL(fork)
  if (FAILS("fork", EAGAIN)) return -1;
  const int number = ++forks;
  const pid_t pid = real();
  if (pid == 0 && thread_name[0]) become(thread_name, '.', number);
  return pid;
}

struct start {
  void* (*function)(void*);
  void* argument;
  char parent[sizeof thread_name];
  int number;
};

static void* run_thread(void* given) {
  struct start start = *(struct start*)given;
  munmap(given, sizeof start);
  if (start.parent[0]) become(start.parent, '+', start.number);
  return start.function(start.argument);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*), void* argument) {
  REAL(pthread_create)
  if (FAILS("pthread_create", EAGAIN)) return EAGAIN;
  struct start* start =
      (struct start*)syscall(SYS_mmap, NULL, sizeof *start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *start = (struct start){function, argument, "", ++threads};
  strcpy(start->parent, thread_name);
  return real(thread, attributes, run_thread, start);
}

// glibc's own names of these, because dlsym(3) may allocate memory.
// NOLINTBEGIN(bugprone-reserved-identifier)
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* at, size_t size);
// NOLINTEND(bugprone-reserved-identifier)

#define NO_MEMORY(name) fails_now("memory", &allocations, name, ENOMEM)
void* malloc(size_t size) { return NO_MEMORY("malloc") ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return NO_MEMORY("calloc") ? NULL : __libc_calloc(count, size); }
void* realloc(void* at, size_t size) { return NO_MEMORY("realloc") ? NULL : __libc_realloc(at, size); }
