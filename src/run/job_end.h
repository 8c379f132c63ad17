// SPDX-License-Identifier: MIT
#pragma once

namespace rlock::run {

// How a job ended.
struct JobEnd {
  enum class Kind {
    none,            // not yet
    exited,          // the command did, value: its status
    signalled,       // the command was killed, value: the signal
    lost,            // the lock was lost or in doubt while the command ran
    timed_out,       // --max-hold was over
    hook_failed,     // --on-acquire did; the command was not started
    not_executable,  // value: errno of exec(2)
    not_found,       // value: errno of exec(2)
    system_refused,  // the command could not be started
  };
  Kind kind = Kind::none;
  int value = 0;
  bool operator==(const JobEnd&) const = default;
};

}  // namespace rlock::run
