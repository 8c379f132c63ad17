// SPDX-License-Identifier: MIT
// The process tree below a guard. A guard is a subreaper (PR_SET_CHILD_SUBREAPER, prctl(2)), so whatever
// its descendants do, fork twice, call setsid(2) or lose their parents, they stay below it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"

namespace rlock::run {

// From now on orphaned descendants of this process become its children. Errors: system.
Result<void> become_subreaper();

// All living descendants of this process, parents before children; without those that are spared and what is below
// them. A snapshot: a process that forks or ends meanwhile may hide another one from it.
//
// Its cost follows the size of the tree: the kernel lists the children of each process (proc(5),
// /proc/PID/task/TID/children). A kernel without CONFIG_PROC_CHILDREN does not; there it costs a look at every process
// of the host. None where processes_visible() is false.
std::vector<pid_t> descendants(const std::set<pid_t>& spared = {});

// The descendants that this process has been given by exec(2): a shell may have started them before it became us.
std::set<pid_t> children_so_far();

// No shell does job control for our process group: none of our ancestors in it has a parent that is outside of the
// group and in its session (POSIX, "Orphaned Process Group"). That is the case in cron, in CI, below ssh(1) with a
// command. Also true where the ancestors cannot be seen, in /proc or from inside a PID namespace.
bool group_is_orphaned();

// Whether descendants() sees anything at all: /proc may not be mounted, or be that of another PID namespace.
bool processes_visible();

// Whether that process is seen to be neither stopped nor dead. REQUIRES: it was not waited for yet.
bool is_running(pid_t pid);

struct Killed {
  std::vector<pid_t> refused;  // they run as another user
  bool forking = false;        // new ones went on appearing
};

// Kills every descendant, each as soon as it is seen, and looks again until nothing new appears. A process that still
// appears then is being forked: it is stopped (SIGSTOP) from there on, since who is stopped cannot fork, makes no room
// for more, and keeps its children; when nothing new appears all of that is killed. Not those in the process group
// `group`, which has others than ours in it: the kernel may hang up on a group with a stopped member when another one
// ends (POSIX, _Exit()). They are killed again and again. Takes about a second at most; then what has died should be
// reaped. `alive` is called before each look, and again and again meanwhile.
//
// Nothing that it has signalled executes another instruction, but what dies must still be waited for, and that nothing
// is left is known from waitpid(2) alone: call it until then.
Killed kill_descendants(const std::set<pid_t>& spared, pid_t group, const std::function<void()>& alive);

// Its name, as it has set it, 15 bytes at most (proc(5), /proc/PID/comm); "" if it cannot be read.
std::string name_of_process(pid_t pid);

// "pid 4242 (tar)", for people; the name is escaped.
std::string describe_process(pid_t pid);

}  // namespace rlock::run
