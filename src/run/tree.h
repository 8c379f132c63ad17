// SPDX-License-Identifier: MIT
// The process tree below a guard. A guard is a subreaper (PR_SET_CHILD_SUBREAPER, prctl(2)), so whatever
// its descendants do, fork twice, call setsid(2) or lose their parents, they stay below it.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <vector>

#include "base/error.h"

namespace rlock::run {

// From now on orphaned descendants of this process become its children. Errors: system.
Result<void> become_subreaper();

// All living descendants of this process, parents before children, by one look through /proc; without those that are
// spared and what is below them. A snapshot: a process that forks meanwhile may hide a child from it.
std::vector<pid_t> descendants(const std::set<pid_t>& spared = {});

// The descendants that this process has been given by exec(2): a shell may have started them before it became us.
std::set<pid_t> children_so_far();

// No shell does job control for our process group: none of our ancestors in it has a parent that is outside of the
// group and in its session (POSIX, "Orphaned Process Group"). So it is in cron, in CI, below ssh(1) with a command.
// Also true where the ancestors cannot be seen, in /proc or from inside a PID namespace.
bool group_is_orphaned();

// Whether descendants() sees anything at all: /proc may not be mounted, or be that of others.
bool processes_visible();

// Sends `signal` to every descendant once. Returns those that refused it: they run as another user.
std::vector<pid_t> signal_descendants(int signal, const std::set<pid_t>& spared);

// "pid 4242 (tar)", for people; the name is escaped.
std::string describe_process(pid_t pid);

}  // namespace rlock::run
