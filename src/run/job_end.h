// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

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

// For programs: on --status-fd, and in the history.
constexpr std::string_view word(JobEnd::Kind kind) {
  using Kind = JobEnd::Kind;
  switch (kind) {
    case Kind::exited: return "exited";
    case Kind::signalled: return "signalled";
    case Kind::lost: return "lost";
    case Kind::timed_out: return "timed-out";
    case Kind::hook_failed: return "hook-failed";
    case Kind::not_found: return "not-found";
    case Kind::not_executable: return "not-executable";
    case Kind::system_refused:
    case Kind::none: break;
  }
  return "error";
}

}  // namespace rlock::run
