// SPDX-License-Identifier: MIT
// The process tree below a guard. A guard is a subreaper (PR_SET_CHILD_SUBREAPER, prctl(2)), so its descendants stay
// below it even if they fork twice, call setsid(2) or lose their parents.
#pragma once

#include <sys/types.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"

namespace rlock::run {

// Makes orphaned descendants of this process its children from now on. Errors: system.
Result<void> become_subreaper();

// All living descendants of this process except `spared` and what is below them, with parents before children. A
// snapshot: it may miss processes if others fork or end meanwhile. Empty if !processes_visible().
//
// Its cost depends on the size of the tree, because the kernel lists the children of each process (proc(5),
// /proc/PID/task/TID/children). Without CONFIG_PROC_CHILDREN it has to look at every process of the host.
std::vector<pid_t> descendants(const std::set<pid_t>& spared = {});

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

struct Killed {
  std::vector<pid_t> refused;  // they run as another user
  bool forking = false;        // new ones kept appearing
};

// Kills every descendant as soon as it is seen, and looks again until nothing new appears. Takes about a second at
// most; then the dead should be reaped. Calls `alive` before each look and often meanwhile.
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

}  // namespace rlock::run
