// SPDX-License-Identifier: MIT
// The course of a job, as JSON lines for a program that watches: --status-fd. The man page describes the fields.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "lock/verbs.h"
#include "run/job.h"

namespace rlock::cli {

// How `rlock run` ends.
struct Ending {
  std::string_view result;  // a word of the man page
  int status = 0;           // as a shell shows it
  int signal = 0;           // that it dies of, 0: none
};

class Events {
 public:
  Events() = default;  // nobody watches
  // Writes to a copy of `fd`, which itself is closed where the command begins; -1: nobody watches. Errors: system.
  static Result<Events> open(int fd);

  bool wanted() const { return fd_.has_value(); }
  // Each writes one line. One that cannot be written within a moment is left out, with a warning: a reader that is
  // stuck or gone must not stop a job.
  void waiting(const lock::LockName& name, const lock::Acquired& found) const;
  void acquired(const lock::Hold& hold, milliseconds waited) const;
  void lock_event(const lock::LockName& name, const run::LockEvent& event) const;
  void exit(const std::vector<lock::LockName>& names, const Ending& ending) const;

 private:
  void write(const std::string& line) const;

  std::optional<UniqueFd> fd_;
};

}  // namespace rlock::cli
