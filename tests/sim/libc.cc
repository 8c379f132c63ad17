// SPDX-License-Identifier: MIT
// The seam: functions of libc by which rlock learns the time, waits, connects, starts threads and gets random numbers.
// In a thread of the world they ask the scheduler; elsewhere they are the real ones. rlock itself is not changed, and
// everything else that it calls is real: sockets, eventfd(2), memory.
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "real.h"
#include "scheduler.h"

namespace rlock::sim::real {
namespace {

template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define REAL(name) static auto* const real = find<decltype(::name)>(#name)

int poll(pollfd* fds, nfds_t count, int timeout) {
  REAL(poll);
  return real(fds, count, timeout);
}
int close(int fd) {
  REAL(close);
  return real(fd);
}
int pthread_create(pthread_t* id, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  REAL(pthread_create);
  return real(id, attributes, body, argument);
}
int pthread_join(pthread_t id, void** result) {
  REAL(pthread_join);
  return real(id, result);
}
int clock_gettime(clockid_t clock, timespec* time) {
  REAL(clock_gettime);
  return real(clock, time);
}

}  // namespace rlock::sim::real

using rlock::sim::world;
namespace real = rlock::sim::real;

namespace {

// When a world begins, by all clocks; an arbitrary number.
constexpr time_t kBegin = 1'700'000'000;

long long nanoseconds(const timespec& time) { return (time.tv_sec - kBegin) * rlock::sim::kSecond + time.tv_nsec; }

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const bool of_cpu = clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
  if (!world || of_cpu) return real::clock_gettime(clock, time);
  const auto now = world->now();
  *time = {kBegin + now / rlock::sim::kSecond, now % rlock::sim::kSecond};
  return 0;
}

int poll(pollfd* fds, nfds_t count, int timeout) {
  return world ? world->poll(fds, count, timeout) : real::poll(fds, count, timeout);
}

// NOLINTNEXTLINE(bugprone-reserved-identifier): what poll(2) becomes where the compiler does not know the array
int __poll_chk(pollfd* fds, nfds_t count, int timeout, size_t) { return poll(fds, count, timeout); }

int timerfd_create(int clock, int flags) noexcept {
  if (!world) return real::find<int(int, int)>("timerfd_create")(clock, flags);
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd >= 0) world->add_timer(fd);
  return fd;
}

int timerfd_settime(int fd, int flags, const itimerspec* wanted, itimerspec* before) noexcept {
  if (world && world->set_timer(fd, nanoseconds(wanted->it_value))) return 0;
  return real::find<int(int, int, const itimerspec*, itimerspec*)>("timerfd_settime")(fd, flags, wanted, before);
}

int connect(int fd, const sockaddr* address, socklen_t length) {
  if (!world || address->sa_family != AF_INET) {
    return real::find<int(int, const sockaddr*, socklen_t)>("connect")(fd, address, length);
  }
  sockaddr_in to;
  std::memcpy(&to, address, sizeof to);
  errno = world->connect(fd, ntohs(to.sin_port));
  return errno == 0 ? 0 : -1;
}

int close(int fd) {
  if (world) world->closed(fd);
  return real::close(fd);
}

ssize_t getrandom(void* bytes, size_t length, unsigned flags) {
  if (!world) return real::find<ssize_t(void*, size_t, unsigned)>("getrandom")(bytes, length, flags);
  for (size_t i = 0; i < length; ++i) static_cast<unsigned char*>(bytes)[i] = world->random.next() & 0xff;
  return static_cast<ssize_t>(length);
}

pid_t getpid() noexcept { return world ? 1000 + world->process().number : real::find<pid_t()>("getpid")(); }

int pthread_create(pthread_t* id, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  return world ? world->create_thread(id, attributes, body, argument)
               : real::pthread_create(id, attributes, body, argument);
}

int pthread_join(pthread_t id, void** result) {
  return world ? world->join(id, result) : real::pthread_join(id, result);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  if (!world) return real::find<int(pthread_mutex_t*)>("pthread_mutex_lock")(mutex);
  world->lock(mutex);
  return 0;
}

}  // extern "C"
