// SPDX-License-Identifier: MIT
// Programs that run beside us: started in the background, or kept running.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/unique_fd.h"

namespace rlock::run {

// Starts this very program with other arguments as a daemon (daemon(7): own session, not our child, root
// folder, umask 077, no signal blocked, few of our variables), with standard error at the end of the file `log_path`.
// Returns a descriptor that becomes readable when the daemon and all that inherit from it have ended. Errors: system.
Result<UniqueFd> launch_daemon(const std::vector<std::string>& argv, const std::string& log_path);

// How a program is looked after that is kept running.
struct Upkeep {
  enum class Advice {
    go_on,
    restart,  // have it end (SIGTERM), and start it again
    give_up,  // kill it, and start it no more
  };
  // Asked each second for as long as the program runs.
  std::function<Advice()> look;
  // Told when a signal has killed it that neither we nor `look` asked for: how often in a row, each within a second of
  // its start, and how long it is until the next start.
  std::function<void(int signal, int times, milliseconds pause)> died;
};

// Runs argv[0] (looked up in PATH) in the foreground and starts it again whenever it is killed by a signal: after
// 100 ms, and after twice that each time that it dies within a second, 5 s at most.
// Returns its status once it has exited by itself. SIGTERM and SIGINT are passed on to it and end this too.
// Errors: system; unavailable (it was not found, or `look` says to give up).
Result<int> keep_running(const std::vector<std::string>& argv, const Upkeep& upkeep);

}  // namespace rlock::run
