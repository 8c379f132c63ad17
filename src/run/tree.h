// SPDX-License-Identifier: MIT
// The process tree below a guard. A guard is a subreaper (PR_SET_CHILD_SUBREAPER, prctl(2)), so its descendants stay
// below it even if they fork twice, call setsid(2) or lose their parents.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <set>
#include <vector>

#include "base/clock.h"

namespace rlock::run {

// Makes orphaned descendants of this process its children from now on. Errors: system.
Result<void> become_subreaper();

// All living descendants of this process, with parents before children, except `spared`, file writers
// (base/write_line.h), private servers (redis/local_server.h), and what is below them. A snapshot: it may miss
// processes if others fork or end meanwhile. Empty if !processes_visible().
//
// Its cost depends on the size of the tree, because the kernel lists the children of each process (proc(5),
// /proc/PID/task/TID/children). Without CONFIG_PROC_CHILDREN it has to look at every process of the host.
std::vector<pid_t> descendants(const std::set<pid_t>& spared = {});

// Whether the kernel names only such exceptions as children of this thread. Unlike descendants() this is a proof that
// the tree is empty, as ECHILD is. REQUIRES: the process's first thread, which reaps all children.
bool only_spared_left(const std::set<pid_t>& spared = {});

// The descendants that this process had before exec(2): a shell may have started them before it became rlock.
std::set<pid_t> children_so_far();

// Whether no shell does job control for our process group, as in cron, in CI, or with ssh(1) and a command: no ancestor
// in the group has a parent in the same session outside of the group (POSIX, "Orphaned Process Group"). Also true if
// the ancestors are not visible in /proc, or from inside a PID namespace.
bool group_is_orphaned();

// Whether descendants() can see anything: /proc may not be mounted, or belong to another PID namespace.
bool processes_visible();

// Whether that process is visible and neither stopped nor dead. REQUIRES: it was not reaped yet.
bool is_running(pid_t pid);

// The parent of this process, its parent, and so on, as far as /proc shows them.
std::vector<pid_t> ancestors();

// The words of its command line and of the environment with which it was started, as far as we may read them.
std::vector<std::string> words_of_process(pid_t pid);

struct Killed {
  std::vector<pid_t> refused;  // they run as another user
  bool forking = false;        // new ones kept appearing
};

// Kills each of these descendants as soon as it is seen, and looks again until nothing new appears. Takes about a
// second at most; then the dead should be reaped. Calls `alive` before each look and often meanwhile.
//
// If processes keep appearing, something forks them. From then on they are first stopped (SIGSTOP), because a stopped
// process cannot fork, but keeps its children and its place among the processes. When nothing new appears, they are all
// killed. Members of `group`, which also has members that are not ours, are never stopped but killed again and again,
// because the kernel may hang up on a group with a stopped member when another one ends (POSIX, _Exit()).
//
// Signalled processes execute nothing more, but have to be reaped, and only waitpid(2) proves that nothing is left:
// repeat this until then.
Killed kill_descendants(const std::set<pid_t>& spared, pid_t group, const std::function<void()>& alive);

// The name that it has given itself, at most 15 bytes (proc(5), /proc/PID/comm); "" if it cannot be read.
std::string name_of_process(pid_t pid);

// "pid 4242 (tar)" for people; the name is escaped.
std::string describe_process(pid_t pid);

// For Termination::set_consequence() if the lock is no longer renewed.
inline constexpr const char* kLockNotKept =
    "others get the lock when its lease ends, even if the process is still running";

// Ends the tree below a guard: SIGTERM, later SIGKILL again and again until nothing is left. If something cannot be
// ended, there is one message.
class Termination {
 public:
  // `name`: the job's, for messages. `longest_look`: see run/watchdog.h. `spared`: children that we must not end.
  // `group`: our process group, which contains processes that are not ours. `alive` is called again and again while we
  // kill, from before the first look, to show that the killing continues.
  Termination(
      std::string name, milliseconds longest_look, std::set<pid_t> spared = {}, pid_t group = getpgrp(),
      std::function<void()> alive = [] {})
      : name_(std::move(name)),
        longest_look_(longest_look),
        spared_(std::move(spared)),
        group_(group),
        alive_(std::move(alive)) {}

  // What follows if something cannot be ended, for the message.
  void set_consequence(std::string text) { consequence_ = std::move(text); }

  // A child, from its start until it is reaped. It is ended even if /proc does not show it.
  void started(pid_t child) { children_.push_back(child); }
  void reaped(pid_t child) { std::erase(children_, child); }

  bool killing() const { return killing_since_.has_value(); }

  // Sends SIGTERM to all.
  void begin();

  // From now on, go_on() kills.
  void kill_all(TimePoint now);

  // Kills what is left, after kill_all(). Call it again by next().
  void go_on(TimePoint now);
  TimePoint next() const;  // TimePoint::max() before kill_all()

  // Reports a process that refuses our signals because it runs as another user.
  void complain_of(pid_t pid);

 private:
  void signal(int number);
  void kill_once();
  void complain_of_survivors();

  std::string name_;
  milliseconds longest_look_;
  std::set<pid_t> spared_;
  pid_t group_;
  std::function<void()> alive_;
  std::string consequence_ = "the lock is kept until it ends";
  std::vector<pid_t> children_;
  std::optional<TimePoint> killing_since_;
  milliseconds look_again_ = milliseconds(1);  // soon, for what was forked meanwhile; then less and less often
  bool forking_ = false;                       // new processes keep appearing
  bool complained_ = false;
};

// Processes that the command left behind and that are ended, for a message to those who will miss them.
struct LeftBehind {
  std::size_t number = 0;
  std::string who;  // "make (pid 12), cc (pid 14), sh (pid 15) and 2 more", not escaped

  // All that live below this process now, except `init`, a namespace's first (-1: none). Needs processes_visible().
  static LeftBehind now(pid_t init);
};

// Reports them as ended. `kept_by` is the option that keeps such processes. Does nothing if there are none.
void report_ended(const std::string& job, const LeftBehind& left, const std::string& kept_by);

}  // namespace rlock::run
