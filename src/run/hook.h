// SPDX-License-Identifier: MIT
// Shell texts that run beside a job: --on-acquire, --on-release, --on-lost.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "run/folder.h"
#include "run/signals.h"

namespace rlock::run {

struct Hooks {
  std::string on_acquire, on_release, on_lost;  // empty: none
  milliseconds limit{};                         // for each
};

// Starts `text` by /bin/sh -c in `folder`, as our child in the process group `group`, which is the command's: the
// terminal treats it as it would the command. In a group of its own if that group is of another session. Standard input
// is empty, and what it prints goes to standard error, because standard output is the command's. It dies when the
// calling thread ends. Errors: system.
Result<pid_t> start_hook(const std::string& text, const std::vector<std::string>& environment,
                         const Folder& folder, pid_t group, const SignalBlock& signals);

// "ended with 3", "was killed by signal 9": what a status of waitpid(2) says. Empty if all was well.
std::string trouble_of(int status);

// Says that a hook has failed. `fatal`: it ran before the command.
void report_hook_trouble(const std::string& job, bool fatal, const std::string& trouble);

}  // namespace rlock::run
