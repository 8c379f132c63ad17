// SPDX-License-Identifier: MIT
// Programs beside rlock: a daemon, and a program that is kept running.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/unique_fd.h"

namespace rlock::run {

// Starts rlock with other arguments as a daemon (daemon(7)): own session, not our child, root folder, umask 077, no
// blocked signals, few of our variables, and with standard error appended to the file `log_path`. Returns a descriptor
// that becomes readable when the daemon and all that inherit from it have ended. Errors: system.
Result<UniqueFd> launch_daemon(const std::vector<std::string>& argv, const std::string& log_path);

// How to watch over a program that is kept running.
struct Upkeep {
  enum class Advice {
    go_on,
    restart,  // SIGTERM, then start it again
    give_up,  // SIGKILL, and do not start it again
  };
  // Called each second while the program runs.
  std::function<Advice()> look;
  // Called when a signal from elsewhere has killed it: how many times in a row within a second of its start, and the
  // pause before the next start.
  std::function<void(int signal, int times, milliseconds pause)> died;
};

// Runs argv[0] (looked up in PATH) in the foreground. If a signal kills it, starts it again after 100 ms; each time
// that it dies within a second the pause doubles, up to 5 s. Returns its status once it exits by itself. SIGTERM and
// SIGINT are passed on to it, and also end this call. Errors: system; unavailable (it was not found, or `look` says to
// give up).
Result<int> keep_running(const std::vector<std::string>& argv, const Upkeep& upkeep);

}  // namespace rlock::run
