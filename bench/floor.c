// SPDX-License-Identifier: MIT
// floor [-w] ADDRESS NAME COMMAND [ARG...]: the least that a lock over Redis can cost. ADDRESS is the path of a Unix socket,
// or a port of 127.0.0.1.
//
//     cc -O2 -static -o floor floor.c
//
// On one connection, a script takes a plain lock in Redisson's layout, the command runs, and another script gives the lock
// back. It guarantees nothing: it does not renew, guard, or notice a loss. No lock that needs two exchanges with Redis is
// faster, so others are measured against it.
//
// With -w it waits in order of arrival until the previous release pushes an element (BLPOP), and then asks for the lock,
// because a message alone does not grant it.
//
// Exits with the command's status, with 75 if the lock is held, or with 69 if Redis is unreachable.
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

// KEYS: lock. ARGV: lease in ms, owner. Returns nil if granted, else the remaining ms of the holder.
static const char kAcquire[] =
    "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
    "redis.call('hincrby', KEYS[1], ARGV[2], 1) "
    "redis.call('pexpire', KEYS[1], ARGV[1]) "
    "return nil end "
    "return redis.call('pttl', KEYS[1])";
// KEYS: lock, channel. ARGV: message, lease in ms, owner. Returns nil if not ours, 0 if still held, 1 if free.
static const char kRelease[] =
    "if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end "
    "if redis.call('hincrby', KEYS[1], ARGV[3], -1) > 0 then redis.call('pexpire', KEYS[1], ARGV[2]) return 0 end "
    "redis.call('del', KEYS[1]) "
    "redis.call('publish', KEYS[2], ARGV[1]) "
    "return 1";
// The same, but wakes a waiter. KEYS: lock, list. ARGV as before.
static const char kWake[] =
    "if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end "
    "redis.call('del', KEYS[1]) "
    "redis.call('rpush', KEYS[2], ARGV[1]) "
    "redis.call('pexpire', KEYS[2], ARGV[2]) "
    "return 1";
// Their SHA-1. A wrong one would cost another exchange for each call, which bench/start would notice.
static const char kAcquireDigest[] = "cc1e67c09e3fd45c847d8b3a7e183e6ce7485d2a";
static const char kReleaseDigest[] = "ea40f6632f4833e73034cc0f94c090ba35fa7752";
static const char kWakeDigest[] = "ca352493269c982ec2996a0e94738783f50462a8";

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

// True if the reply is complete: one line (a number, nil as "$-1", or an error), or the two texts of BLPOP.
static int is_whole(const char* text, int length) {
  int lines = text[0] == '*' ? 5 : 1;
  for (int i = 1; i < length && lines > 0; ++i) lines -= text[i] == '\n';
  return lines == 0;
}

// Sends one command and returns its reply.
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
  for (length = 0; !is_whole(text, length);) {
    const ssize_t got = read(fd, text + length, sizeof text - 1 - length);
    if (got <= 0) fail("read");
    length += got;
  }
  text[length - 2] = 0;
  return text;
}

static int is(const char* reply, const char* begin) { return strncmp(reply, begin, strlen(begin)) == 0; }

int main(int argc, char** argv) {
  const int waits = argc > 1 && strcmp(argv[1], "-w") == 0;
  argc -= waits;
  argv += waits;
  if (argc < 4) return 64;
  const char *name = argv[2], *lease = "30000";
  char owner[64], channel[512], turns[512];
  unsigned char random[16];
  if (getrandom(random, sizeof random, 0) != sizeof random) return 71;
  int at = 0;
  for (int i = 0; i < 16; ++i) {
    at += sprintf(owner + at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", random[i]);
  }
  strcpy(owner + at, ":1");
  snprintf(channel, sizeof channel, "redisson_lock__channel:{%s}", name);
  snprintf(turns, sizeof turns, "turns:{%s}", name);

  const int fd = connected(argv[1]);
  const char* reply = reply_to(fd, 6, "EVALSHA", kAcquireDigest, "1", name, lease, owner);
  if (is(reply, "-NOSCRIPT")) reply = reply_to(fd, 6, "EVAL", kAcquire, "1", name, lease, owner);
  while (waits && is(reply, ":")) {
    reply = reply_to(fd, 3, "BLPOP", turns, "0");
    if (is(reply, "*")) reply = reply_to(fd, 6, "EVALSHA", kAcquireDigest, "1", name, lease, owner);
  }
  if (is(reply, ":")) return kHeld;
  if (!is(reply, "$-1")) return fprintf(stderr, "floor: %s\n", reply), kNoServer;

  pid_t pid;
  int status = kNotExecuted << 8;
  if (posix_spawnp(&pid, argv[3], NULL, NULL, argv + 3, environ) == 0) waitpid(pid, &status, 0);

  const char *digest = waits ? kWakeDigest : kReleaseDigest, *script = waits ? kWake : kRelease;
  const char* woken = waits ? turns : channel;
  reply = reply_to(fd, 8, "EVALSHA", digest, "2", name, woken, "0", lease, owner);
  if (is(reply, "-NOSCRIPT")) reply = reply_to(fd, 8, "EVAL", script, "2", name, woken, "0", lease, owner);
  if (!is(reply, ":1")) fprintf(stderr, "floor: release: %s\n", reply);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
