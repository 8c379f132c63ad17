// SPDX-License-Identifier: MIT
// floor ADDRESS NAME COMMAND [ARG...]: the least that a lock over Redis can cost. ADDRESS is the path of a Unix socket, or
// a port of 127.0.0.1.
//
//     cc -O2 -static -o floor floor.c
//
// One connection; one script takes a plain lock as Redisson lays it out, one gives it back; the command runs in between.
// It keeps no promise: it does not renew, does not wait, guards nothing, hands nothing on, and does not notice a loss. No
// lock that needs two exchanges with Redis is faster; a lock that promises more is measured by its distance from here.
//
// Ends with the command's status; with 75 if the lock is held, with 69 if Redis is not there.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

// KEYS: lock. ARGV: lease in ms, owner. Nil if it is granted, else the ms that are left to the holder.
static const char kAcquire[] =
    "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
    "redis.call('hincrby', KEYS[1], ARGV[2], 1) "
    "redis.call('pexpire', KEYS[1], ARGV[1]) "
    "return nil end "
    "return redis.call('pttl', KEYS[1])";
// KEYS: lock, channel. ARGV: message, lease in ms, owner. Nil if it is not ours, 0 if we hold it still, 1 if it is free.
static const char kRelease[] =
    "if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end "
    "if redis.call('hincrby', KEYS[1], ARGV[3], -1) > 0 then redis.call('pexpire', KEYS[1], ARGV[2]) return 0 end "
    "redis.call('del', KEYS[1]) "
    "redis.call('publish', KEYS[2], ARGV[1]) "
    "return 1";
// Their SHA-1. One that is wrong costs an exchange for each call; bench/start notices it.
static const char kAcquireDigest[] = "cc1e67c09e3fd45c847d8b3a7e183e6ce7485d2a";
static const char kReleaseDigest[] = "ea40f6632f4833e73034cc0f94c090ba35fa7752";

enum { kNoServer = 69, kHeld = 75, kNotExecuted = 127 };

static void fail(const char* what) {
  perror(what);
  exit(kNoServer);
}

static int connected(const char* address) {
  struct sockaddr_un local = {.sun_family = AF_UNIX};
  struct sockaddr_in tcp = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int is_path = address[0] == '/';
  const int fd = socket(is_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  tcp.sin_port = htons(atoi(address));
  snprintf(local.sun_path, sizeof local.sun_path, "%s", address);
  if (connect(fd, is_path ? (struct sockaddr*)&local : (struct sockaddr*)&tcp, is_path ? sizeof local : sizeof tcp) != 0)
    fail(address);
  return fd;
}

// Sends one command and returns its reply, which is one line: a number, nil as "$-1", or an error.
static const char* reply_to(int fd, int count, ...) {
  static char text[4096];
  int length = snprintf(text, sizeof text, "*%d\r\n", count);
  va_list words;
  va_start(words, count);
  for (int i = 0; i < count; ++i) {
    const char* word = va_arg(words, const char*);
    length += snprintf(text + length, sizeof text - length, "$%zu\r\n%s\r\n", strlen(word), word);
    if (length >= (int)sizeof text) exit(64);
  }
  va_end(words);
  if (write(fd, text, length) != length) fail("write");
  for (length = 0; length < 2 || memcmp(text + length - 2, "\r\n", 2) != 0;) {
    const ssize_t got = read(fd, text + length, sizeof text - 1 - length);
    if (got <= 0) fail("read");
    length += got;
  }
  text[length - 2] = 0;
  return text;
}

static int is(const char* reply, const char* begin) { return strncmp(reply, begin, strlen(begin)) == 0; }

int main(int argc, char** argv) {
  if (argc < 4) return 64;
  const char *name = argv[2], *lease = "30000";
  char owner[64], channel[512];
  unsigned char random[16];
  if (getrandom(random, sizeof random, 0) != sizeof random) return 71;
  int at = 0;
  for (int i = 0; i < 16; ++i) {
    at += sprintf(owner + at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", random[i]);
  }
  strcpy(owner + at, ":1");
  snprintf(channel, sizeof channel, "redisson_lock__channel:{%s}", name);

  const int fd = connected(argv[1]);
  const char* reply = reply_to(fd, 6, "EVALSHA", kAcquireDigest, "1", name, lease, owner);
  if (is(reply, "-NOSCRIPT")) reply = reply_to(fd, 6, "EVAL", kAcquire, "1", name, lease, owner);
  if (is(reply, ":")) return kHeld;
  if (!is(reply, "$-1")) return fprintf(stderr, "floor: %s\n", reply), kNoServer;

  pid_t pid;
  int status = kNotExecuted << 8;
  if (posix_spawnp(&pid, argv[3], NULL, NULL, argv + 3, environ) == 0) waitpid(pid, &status, 0);

  reply = reply_to(fd, 8, "EVALSHA", kReleaseDigest, "2", name, channel, "0", lease, owner);
  if (is(reply, "-NOSCRIPT")) reply = reply_to(fd, 8, "EVAL", kRelease, "2", name, channel, "0", lease, owner);
  if (!is(reply, ":1")) fprintf(stderr, "floor: release: %s\n", reply);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
