// SPDX-License-Identifier: MIT
// The functions of libc that libc.cc takes the place of.
#pragma once

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>

namespace rlock::sim::real {

int poll(pollfd* fds, nfds_t count, int timeout);
int close(int fd);
int pthread_create(pthread_t* id, const pthread_attr_t* attributes, void* (*body)(void*), void* argument);
int pthread_join(pthread_t id, void** result);
int clock_gettime(clockid_t clock, timespec* time);

}  // namespace rlock::sim::real
