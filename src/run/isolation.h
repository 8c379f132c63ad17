// SPDX-License-Identifier: MIT
// A PID namespace for the command (pid_namespaces(7)): whatever runs in it is killed by the kernel when the namespace
// ends, and it ends with us, even if every guard is killed at the same instant.
#pragma once

#include <sys/types.h>

#include "base/error.h"
#include "base/unique_fd.h"

namespace rlock::run {

struct Isolation {
  UniqueFd life;         // the namespace lives as long as this is open in anybody
  pid_t init = -1;       // its first process, our child; it does nothing but to reap
  int proc_failure = 0;  // errno, if /proc could not be made to show this namespace only

  // The command has ended, and been waited for. The processes left in the namespace belong to init from now on, which
  // ends as soon as none of that is left. May be called again.
  void command_ended();

 private:
  bool told_ = false;
};

// As fork(2), but the child is in a PID namespace of its own; it is our child all the same. Returns 0 in it.
// A user without the right gets a user namespace with it (user_namespaces(7)).
// Errors: system (the kernel, or a container around us, does not allow it).
// REQUIRES: one thread; we are a subreaper.
Result<pid_t> fork_isolated(Isolation& isolation);

}  // namespace rlock::run
