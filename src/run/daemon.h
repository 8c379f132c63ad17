// SPDX-License-Identifier: MIT
// Programs that run beside us: started in the background, or kept running.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"

namespace rlock::run {

// Starts this very program with other arguments as a daemon (daemon(7): own session, not our child, root
// folder, umask 077, no signal blocked, few of our variables), with standard error at the end of the file `log_path`. Returns a descriptor
// that becomes readable when the daemon and all that inherit from it have ended. Errors: system.
Result<UniqueFd> launch_daemon(const std::vector<std::string>& argv, const std::string& log_path);

// Runs argv[0] (looked up in PATH) in the foreground and starts it again whenever it is killed by a signal.
// Returns its status once it has exited by itself. SIGTERM and SIGINT are passed on to it and end this too.
// Errors: system; unavailable (it was not found).
Result<int> keep_running(const std::vector<std::string>& argv);

}  // namespace rlock::run
