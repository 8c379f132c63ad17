// SPDX-License-Identifier: MIT
// The process that reads passwords for a monitor, where that starts processes: all children of a monitor, and their
// descendants, are its job's tree, which it kills and whose end it waits for.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/error.h"
#include "base/secret.h"
#include "base/unique_fd.h"
#include "redis/endpoint.h"
#include "run/signals.h"

namespace rlock::run {

class PasswordAgent {
 public:
  // Forks it. It is in a session of its own, holds all signals back, and has no connection; it ends when all processes
  // have let go of it. Errors: system. REQUIRES: this process has one thread.
  static Result<std::unique_ptr<PasswordAgent>> start(const redis::PasswordSource& source, const SignalBlock& signals);
  PasswordAgent(const PasswordAgent&) = delete;
  PasswordAgent& operator=(const PasswordAgent&) = delete;
  // Waits for its end if this process has forked it. REQUIRES: the other processes have let go of it, or end.
  ~PasswordAgent();

  // A source that asks the agent, for a process that was forked after it. The agent goes on with what takes longer than
  // who asks has time, and the next one who asks gets that. Errors of reading: those of `source`; config (the agent has
  // ended). REQUIRES: this object lives longer.
  redis::PasswordSource source() const;

  // This process needs it no more.
  void let_go();

 private:
  PasswordAgent() = default;
  Result<Secret> ask(const Until& until) const;

  UniqueFd socket_, needed_;  // the agent ends with the last copy of `needed_`
  UniqueFd process_;          // pidfd
};

}  // namespace rlock::run
