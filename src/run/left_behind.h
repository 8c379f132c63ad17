// SPDX-License-Identifier: MIT
// The processes that the command has left behind, and that are ended because of that: for those who miss them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

namespace rlock::run {

struct LeftBehind {
  std::size_t number = 0;
  std::string who;  // "make (pid 12), cc (pid 14), sh (pid 15) and 2 more"; the names are as the processes have set them

  // All that lives below this process now, but for `init`, the first process of a namespace, -1 if there is none. Nothing
  // where processes_visible() is false (run/tree.h).
  static LeftBehind now(pid_t init);
};

// Says that they have been ended, and `kept_by`, which option keeps such processes. Nothing if there were none.
void report_ended(const std::string& job, const LeftBehind& left, const std::string& kept_by);

}  // namespace rlock::run
