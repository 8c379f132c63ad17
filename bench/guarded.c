// SPDX-License-Identifier: MIT
// guarded [-w] ADDRESS NAME COMMAND [ARG...]: the least that a lock over Redis can cost with the guards of rlock.
//
//     cc -O2 -static -o guarded guarded.c
//
// It is used as floor.c is, and sends the same scripts, but it has the processes of rlock, with the same system calls. So
// what it costs beyond the floor are the guards. What rlock costs beyond it are a larger program and larger scripts.
//
//     frontend   this process: passes signals on, and if the monitor dies or misses the deadline, kills the tree
//     monitor    its child, in a session of its own: renews, kills the tree if the frontend dies, gives up if the lock
//                is lost, and releases the lock when no process of the tree is left
//     command    the monitor's child, which dies with it
//
// With -w, the waiter whose turn is next forks the monitor and the command ahead. The command waits behind a pipe, its
// gate, until an acquire has confirmed that it is its turn. Each grant lets one more waiter prepare; a waiter that is
// killed then holds up those behind it, which rlock prevents.
//
// It leaves out what few jobs need, such as job control, and what comes later in a job, such as the witness of signals.
//
// Exits as floor.c does, or with 74 if the lock was lost.
#define _GNU_SOURCE
#include "floor.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

// As kAcquire, but a grant lets the next waiter prepare. KEYS: lock, list.
static const struct script kAcquireInTurn = {
    "c29cf9ddfbf0e0c33e7c7ff6958f887ac85edb7d",
    "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
    "redis.call('hincrby', KEYS[1], ARGV[2], 1) "
    "redis.call('pexpire', KEYS[1], ARGV[1]) "
    "redis.call('del', KEYS[2]) "
    "redis.call('rpush', KEYS[2], '1') "
    "return nil end "
    "return redis.call('pttl', KEYS[1])"};
// KEYS: lock. ARGV: lease in ms, owner. Returns 1 if it is ours.
static const struct script kRenew = {
    "5dc17f5a39c80fd3ab8723f2fc7fec6846722ed0",
    "if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return 0 end "
    "redis.call('pexpire', KEYS[1], ARGV[1]) "
    "return 1"};

enum { kLost = 74, kOpenGate = 0, kRenewEvery = 10, kDeadline = 25 };  // the last two: seconds

// The memory that frontend and monitor share.
static struct {
  volatile time_t deadline;  // by CLOCK_BOOTTIME, counted from when a request was sent
  volatile int status;       // of the command
  volatile int ended;        // no process of the tree is left
}* shared;

static struct job job;
static int ahead;  // the guards were forked before the lock is ours
static sigset_t all, before;
static int sockets[2];  // of frontend and monitor

static time_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_BOOTTIME, &time);
  return time.tv_sec;
}

static int make_timer(void) { return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK); }

static void set_timer(int timer, time_t at) {
  const struct itimerspec when = {.it_value.tv_sec = at};
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

// Orphans of our children become our children, so in the end none is left.
static void kill_tree(void) {
  do {
    FILE* children = fopen("/proc/thread-self/children", "r");
    for (int pid; children && fscanf(children, "%d", &pid) == 1;) kill(pid, SIGKILL);
    if (children) fclose(children);
  } while (waitpid(-1, NULL, 0) > 0);
}

static pid_t fork_command(int gate) {
  const pid_t monitor = getpid(), command = fork();
  if (command != 0) return command;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  char opened;
  if (getppid() != monitor || (ahead && read(gate, &opened, 1) != 1)) _exit(125);
  sigprocmask(SIG_SETMASK, &before, NULL);
  execvp(job.command[0], job.command);
  _exit(kNotExecuted);
}

static _Noreturn void monitor(pid_t caller) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  const int signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK), timer = make_timer();
  prctl(PR_SET_PDEATHSIG, SIGCONT);  // in case it is stopped when the frontend dies
  const int frontend = syscall(SYS_pidfd_open, caller, 0);
  int gate[2];
  if (getppid() != caller || (ahead && pipe2(gate, O_CLOEXEC) != 0)) _exit(kNoServer);
  const pid_t command = fork_command(gate[0]);
  setsid();

  int begun = !ahead, runs = 1;
  time_t renew_at = now() + kRenewEvery;
  for (int status, pid; (pid = waitpid(-1, &status, WNOHANG)) >= 0;) {  // then ECHILD
    if (pid == command) {
      shared->status = status;
      runs = 0;
    }
    if (pid > 0) continue;
    set_timer(timer, renew_at);
    struct pollfd events[] = {{signals, POLLIN, 0}, {timer, POLLIN, 0}, {frontend, POLLIN, 0}, {sockets[1], POLLIN, 0}};
    poll(events, 4, -1);
    struct signalfd_siginfo unused;
    while (read(signals, &unused, sizeof unused) > 0) {
    }
    if (events[2].revents) kill_tree();
    if (events[1].revents) {
      renew_at = now() + kRenewEvery;
      // The command dies with us, and the frontend does the rest.
      if (begun && !is(run(&job, kRenew, WORDS("1", job.name, kLease, job.owner)), ":1")) _exit(kLost);
      if (begun) shared->deadline = renew_at - kRenewEvery + kDeadline;
    }
    int number;
    if (!events[3].revents || recv(sockets[1], &number, sizeof number, 0) != sizeof number) continue;
    if (number == kOpenGate) {
      begun = write(gate[1], "", 1) == 1;
    } else if (runs) {
      kill(command, number);
    }
  }
  shared->ended = 1;
  if (begun) release(&job);
  _exit(0);
}

// Makes the caller the frontend. Returns the pid of the monitor.
static pid_t fork_monitor(void) {
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets) != 0) fail("socketpair");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t caller = getpid(), pid = fork();
  close(sockets[pid != 0]);
  if (pid == 0) monitor(caller);
  return pid;
}

// Returns the status to exit with.
static int guard(pid_t pid) {
  sigprocmask(SIG_SETMASK, &all, NULL);
  const int signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK), timer = make_timer();
  const int monitor = syscall(SYS_pidfd_open, pid, 0), open = kOpenGate;
  if (ahead && send(sockets[0], &open, sizeof open, MSG_NOSIGNAL) < 0) fail("send");
  close(job.connection);
  struct pollfd events[] = {{monitor, POLLIN, 0}, {timer, POLLIN, 0}, {signals, POLLIN, 0}};
  while (!events[0].revents) {
    set_timer(timer, shared->deadline + 1);
    poll(events, 3, -1);
    if (now() > shared->deadline && !shared->ended) kill(pid, SIGKILL);
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) > 0) {
      const int number = info.ssi_signo;
      // The command has received those of a terminal, too.
      const int passed_on = number != SIGCHLD && info.ssi_code != SI_KERNEL;
      if (passed_on) send(sockets[0], &number, sizeof number, MSG_NOSIGNAL);
    }
  }
  waitpid(pid, NULL, 0);
  if (shared->ended) return exit_code(shared->status);
  kill_tree();
  fprintf(stderr, "guarded: the lock was lost\n");
  return kLost;
}

int main(int argc, char** argv) {
  job = job_of(argc, argv);
  char front[512];
  snprintf(front, sizeof front, "front:{%s}", job.name);
  const char** alone = WORDS("1", job.name, kLease, job.owner);
  const char** in_turn = WORDS("2", job.name, front, kLease, job.owner);
  time_t sent = now();
  const char* reply = job.waits ? run(&job, kAcquireInTurn, in_turn) : run(&job, kAcquire, alone);
  pid_t pid = -1;
  ahead = job.waits && is(reply, ":");
  if (ahead) {
    reply_to(&job, WORDS("BLPOP", front, "0"));
    pid = fork_monitor();
    sched_yield();  // preparing is less urgent than the work of those whose turn it is
    sigprocmask(SIG_SETMASK, &before, NULL);  // so that it can be ended while it waits
    do {
      reply_to(&job, WORDS("BLPOP", job.turns, "0"));
      sent = now();
      reply = run(&job, kAcquireInTurn, in_turn);
    } while (is(reply, ":"));
  }
  need_grant(reply);
  if (!ahead) pid = fork_monitor();
  shared->deadline = sent + kDeadline;
  return guard(pid);
}
