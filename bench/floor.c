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
#include <spawn.h>

#include "floor.h"

extern char** environ;

int main(int argc, char** argv) {
  const struct job job = job_of(argc, argv);
  const char** acquire = WORDS("1", job.name, kLease, job.owner);
  const char* reply = run(&job, kAcquire, acquire);
  while (job.waits && is(reply, ":")) {
    reply = reply_to(&job, WORDS("BLPOP", job.turns, "0"));
    if (is(reply, "*")) reply = run(&job, kAcquire, acquire);
  }
  need_grant(reply);

  pid_t pid;
  int status = kNotExecuted << 8;
  if (posix_spawnp(&pid, job.command[0], NULL, NULL, job.command, environ) == 0) waitpid(pid, &status, 0);
  release(&job);
  return exit_code(status);
}
