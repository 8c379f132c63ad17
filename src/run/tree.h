// SPDX-License-Identifier: MIT
// The process tree below a guard. A guard is a subreaper (PR_SET_CHILD_SUBREAPER, prctl(2)), so whatever
// its descendants do, fork twice, call setsid(2) or lose their parents, they stay below it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"

namespace rlock::run {

// From now on orphaned descendants of this process become its children. Errors: system.
Result<void> become_subreaper();

// All living descendants of this process, parents before children, by one look through /proc. A snapshot: a
// process that forks meanwhile may hide a child from it.
std::vector<pid_t> descendants();

// Whether descendants() sees anything at all: /proc may not be mounted, or be that of others.
bool processes_visible();

// Sends `signal` to every descendant once. Returns those that refused it: they run as another user.
std::vector<pid_t> signal_descendants(int signal);

// "pid 4242 (tar)", for people; the name is escaped.
std::string describe_process(pid_t pid);

// Kills and reaps until there is no descendant left: waitpid(2) says ECHILD. False: `until` was over first.
bool kill_all_descendants(const Until& until);

}  // namespace rlock::run
