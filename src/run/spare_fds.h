// SPDX-License-Identifier: MIT
// The file descriptors that a guard will need while it guards.
#pragma once

#include "base/error.h"

namespace rlock::run {

// Counts what a guard or a keeper opens in its life, before there is a job: its own timers and events, connections that
// are opened again, the names that are looked up for them, hooks, and /proc, by which it finds what it has to kill. In
// the middle of a job nobody can be told: the lock would not be renewed, or part of the tree not be seen.
// Errors: system (mostly the limit of open files, RLIMIT_NOFILE in getrlimit(2), or no pidfd_open(2), without which no
// guard sees another one end).
Result<void> need_spare_fds();

}  // namespace rlock::run
