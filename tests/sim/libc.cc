// SPDX-License-Identifier: MIT
// The seam: functions of libc by which rlock learns the time, waits, connects, starts threads and gets random numbers.
// In a thread of the world they ask the scheduler; elsewhere they are the real ones. rlock itself is not changed, and
// everything else that it calls is real.
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "scheduler.h"

using rlock::sim::world, rlock::sim::Descriptor, rlock::sim::Descriptors;

namespace {

// The function of libc of that name.
template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
#define REAL(name)                                            \
  (*[] {                                                      \
    static auto* const found = real<decltype(::name)>(#name); \
    return found;                                             \
  }())

// When a world begins, by all clocks; an arbitrary number.
constexpr time_t kBegin = 1'700'000'000;

bool is_ours(int fd) { return world && fd >= Descriptors::kFirst; }

int made(Descriptor::Kind kind) { return world->descriptors.make(kind); }

// What a function of libc returns after that error.
int failed(int error) {
  errno = error;
  return -1;
}

long long nanoseconds(const timespec& time) { return (time.tv_sec - kBegin) * rlock::sim::kSecond + time.tv_nsec; }

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const bool of_cpu = clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
  if (!world || of_cpu) return REAL(clock_gettime)(clock, time);
  const auto now = world->now();
  *time = {kBegin + now / rlock::sim::kSecond, now % rlock::sim::kSecond};
  return 0;
}

int poll(pollfd* fds, nfds_t count, int timeout) {
  return world ? world->poll(fds, count, timeout) : REAL(poll)(fds, count, timeout);
}

// NOLINTNEXTLINE(bugprone-reserved-identifier): what poll(2) becomes where the compiler does not know the array
int __poll_chk(pollfd* fds, nfds_t count, int timeout, size_t) { return poll(fds, count, timeout); }

int timerfd_create(int clock, int flags) noexcept {
  return world ? made(Descriptor::Kind::timer) : REAL(timerfd_create)(clock, flags);
}

int timerfd_settime(int fd, int flags, const itimerspec* wanted, itimerspec* before) noexcept {
  if (!is_ours(fd)) return REAL(timerfd_settime)(fd, flags, wanted, before);
  world->descriptors.find(fd)->due = nanoseconds(wanted->it_value);
  return 0;
}

int eventfd(unsigned count, int flags) noexcept {
  return world ? made(Descriptor::Kind::event) : REAL(eventfd)(count, flags);
}

int eventfd_read(int fd, eventfd_t* value) {
  if (!is_ours(fd)) return REAL(eventfd_read)(fd, value);
  *value = std::exchange(world->descriptors.find(fd)->count, 0);
  return *value > 0 ? 0 : failed(EAGAIN);
}

int eventfd_write(int fd, eventfd_t value) {
  if (!is_ours(fd)) return REAL(eventfd_write)(fd, value);
  world->descriptors.find(fd)->count += value;
  return 0;
}

int epoll_create1(int flags) noexcept { return world ? made(Descriptor::Kind::epoll) : REAL(epoll_create1)(flags); }

// rlock only adds to what it watches.
int epoll_ctl(int fd, int operation, int watched, epoll_event* event) noexcept {
  if (!is_ours(fd)) return REAL(epoll_ctl)(fd, operation, watched, event);
  world->descriptors.find(fd)->watched.push_back(watched);
  return 0;
}

int socket(int domain, int type, int protocol) noexcept {
  return world && domain == AF_INET ? made(Descriptor::Kind::socket) : REAL(socket)(domain, type, protocol);
}

int setsockopt(int fd, int level, int name, const void* value, socklen_t length) noexcept {
  return is_ours(fd) ? 0 : REAL(setsockopt)(fd, level, name, value, length);
}

int connect(int fd, const sockaddr* address, socklen_t length) {
  if (!is_ours(fd)) return REAL(connect)(fd, address, length);
  sockaddr_in to;
  std::memcpy(&to, address, sizeof to);
  const int error = world->connect(fd, ntohs(to.sin_port));
  return error == 0 ? 0 : failed(error);
}

ssize_t send(int fd, const void* bytes, size_t length, int flags) {
  if (!is_ours(fd)) return REAL(send)(fd, bytes, length, flags);
  const Descriptor& socket = *world->descriptors.find(fd);
  if (socket.ended) return failed(EPIPE);
  world->wires->sends(socket.link, {static_cast<const char*>(bytes), length});
  return static_cast<ssize_t>(length);
}

ssize_t recv(int fd, void* bytes, size_t length, int flags) {
  if (!is_ours(fd)) return REAL(recv)(fd, bytes, length, flags);
  Descriptor& socket = *world->descriptors.find(fd);
  if (socket.unread.empty()) return socket.ended ? 0 : failed(EAGAIN);
  const size_t got = socket.unread.copy(static_cast<char*>(bytes), length);
  socket.unread.erase(0, got);
  return static_cast<ssize_t>(got);
}

int close(int fd) {
  if (!is_ours(fd)) return REAL(close)(fd);
  world->close(fd);
  return 0;
}

ssize_t getrandom(void* bytes, size_t length, unsigned flags) {
  if (!world) return REAL(getrandom)(bytes, length, flags);
  for (size_t i = 0; i < length; ++i) static_cast<unsigned char*>(bytes)[i] = world->random.next() & 0xff;
  return static_cast<ssize_t>(length);
}

pid_t getpid() noexcept { return world ? 1000 + world->process().number : REAL(getpid)(); }

int pthread_create(pthread_t* id, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  return world ? world->create_thread(id, attributes, body, argument)
               : REAL(pthread_create)(id, attributes, body, argument);
}

int pthread_join(pthread_t id, void** result) {
  return world ? world->join(id, result) : REAL(pthread_join)(id, result);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  if (!world) return REAL(pthread_mutex_lock)(mutex);
  world->lock(mutex);
  return 0;
}

}  // extern "C"
