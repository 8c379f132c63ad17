// SPDX-License-Identifier: MIT
// What floor.c and guarded.c share: the exchanges of a plain lock in Redisson's layout, on one connection.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

// The digest is SHA-1. With a wrong one, each call would take two exchanges, which tests/docs/bench.bats would notice.
struct script {
  const char* digest;
  const char* text;
};

// KEYS: lock. ARGV: lease in ms, owner. Returns nil if granted, else the remaining ms of the holder.
static const struct script kAcquire = {
    "cc1e67c09e3fd45c847d8b3a7e183e6ce7485d2a",
    "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
    "redis.call('hincrby', KEYS[1], ARGV[2], 1) "
    "redis.call('pexpire', KEYS[1], ARGV[1]) "
    "return nil end "
    "return redis.call('pttl', KEYS[1])"};
// KEYS: lock, channel. ARGV: message, lease in ms, owner. Returns nil if not ours, 0 if still held, 1 if free.
static const struct script kRelease = {
    "ea40f6632f4833e73034cc0f94c090ba35fa7752",
    "if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end "
    "if redis.call('hincrby', KEYS[1], ARGV[3], -1) > 0 then redis.call('pexpire', KEYS[1], ARGV[2]) return 0 end "
    "redis.call('del', KEYS[1]) "
    "redis.call('publish', KEYS[2], ARGV[1]) "
    "return 1"};
// The same, but wakes a waiter. KEYS: lock, list. ARGV as before.
static const struct script kWake = {"ca352493269c982ec2996a0e94738783f50462a8",
                                    "if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end "
                                    "redis.call('del', KEYS[1]) "
                                    "redis.call('rpush', KEYS[2], ARGV[1]) "
                                    "redis.call('pexpire', KEYS[2], ARGV[2]) "
                                    "return 1"};

static const char kLease[] = "30000";  // ms

enum { kNoServer = 69, kHeld = 75, kNotExecuted = 127 };

struct job {
  int waits;       // -w
  int connection;  // to the server
  const char* name;
  char owner[64], channel[512], turns[512];
  char** command;
};

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
  const struct sockaddr* to = is_path ? (struct sockaddr*)&local : (struct sockaddr*)&tcp;
  if (connect(fd, to, is_path ? sizeof local : sizeof tcp) != 0) fail(address);
  return fd;
}

// Reads the command line, makes an owner id, and connects.
static struct job job_of(int argc, char** argv) {
  struct job job = {.waits = argc > 1 && strcmp(argv[1], "-w") == 0};
  if (argc - job.waits < 4) exit(64);
  argv += job.waits;
  job.name = argv[2];
  job.command = argv + 3;
  unsigned char random[16];
  if (getrandom(random, sizeof random, 0) != sizeof random) exit(71);
  int at = 0;
  for (int i = 0; i < 16; ++i) {
    at += sprintf(job.owner + at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", random[i]);
  }
  strcpy(job.owner + at, ":1");
  snprintf(job.channel, sizeof job.channel, "redisson_lock__channel:{%s}", job.name);
  snprintf(job.turns, sizeof job.turns, "turns:{%s}", job.name);
  job.connection = connected(argv[1]);
  return job;
}

static int is(const char* reply, const char* begin) { return strncmp(reply, begin, strlen(begin)) == 0; }

// True if the reply is complete: one line (a number, nil as "$-1", or an error), or the two texts of BLPOP.
static int is_whole(const char* text, int length) {
  int lines = text[0] == '*' ? 5 : 1;
  for (int i = 1; i < length && lines > 0; ++i) lines -= text[i] == '\n';
  return lines == 0;
}

#define WORDS(...) \
  (const char*[]) { __VA_ARGS__, NULL }

// Sends one command and returns its reply.
static const char* reply_to(const struct job* job, const char** words) {
  static char text[4096];
  int count = 0;
  while (words[count]) ++count;
  int length = snprintf(text, sizeof text, "*%d\r\n", count);
  for (int i = 0; i < count; ++i) {
    length += snprintf(text + length, sizeof text - length, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
    if (length >= (int)sizeof text) exit(64);
  }
  if (write(job->connection, text, length) != length) fail("write");
  for (length = 0; !is_whole(text, length);) {
    const ssize_t got = read(job->connection, text + length, sizeof text - 1 - length);
    if (got <= 0) fail("read");
    length += got;
  }
  text[length - 2] = 0;
  return text;
}

// Names the script, or sends it to a server that does not know it. `words`: EVALSHA's, from the number of keys on.
static const char* run(const struct job* job, struct script script, const char** words) {
  const char* all[16] = {"EVALSHA", script.digest};
  for (int i = 0; words[i]; ++i) all[2 + i] = words[i];
  const char* reply = reply_to(job, all);
  if (!is(reply, "-NOSCRIPT")) return reply;
  all[0] = "EVAL";
  all[1] = script.text;
  return reply_to(job, all);
}

static void release(const struct job* job) {
  const char* woken = job->waits ? job->turns : job->channel;
  const char* reply = run(job, job->waits ? kWake : kRelease, WORDS("2", job->name, woken, "0", kLease, job->owner));
  if (!is(reply, ":1")) fprintf(stderr, "floor: release: %s\n", reply);
}

// Exits unless the reply to an acquire is a grant.
static void need_grant(const char* reply) {
  if (is(reply, ":")) exit(kHeld);
  if (is(reply, "$-1")) return;
  fprintf(stderr, "floor: %s\n", reply);
  exit(kNoServer);
}

static int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }
