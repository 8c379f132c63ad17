// SPDX-License-Identifier: MIT
// A shell text that prints the password: tokens that are good for some minutes come from programs.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/process.h"
#include "base/secret.h"
#include "base/wait.h"
#include "redis/endpoint.h"
#include "run/inherited.h"
#include "run/signals.h"

namespace rlock::run {

struct PasswordCommand {
  std::string text;
  std::vector<std::string> environment;  // NAME=value; without secrets
  Folder folder;
};

// Runs the text by /bin/sh -c, and returns what it has printed, without the newline at its end. It has a process group
// of its own, an empty standard input, and our standard error. It gets 10 s, and no more than `until`; then, as after
// its end, the whole group is killed, but for what runs as another user: that is left alone. May be called by several
// threads. Errors: config (it has failed, was not done in time, or has printed nothing or more than Secret::kLongest
// bytes; it cannot be started); interrupted.
Result<Secret> run_password_command(const PasswordCommand& command, const Until& until);

// The process that reads passwords for a monitor, where that starts processes: all children of a monitor, and their
// descendants, are its job's tree, which it kills and whose end it waits for.
class PasswordAgent {
 public:
  // Forks it. It is in a session of its own, holds all signals back, and has no connection; it ends when all processes
  // have let go of it. Errors: system. REQUIRES: this process has one thread.
  static Result<std::unique_ptr<PasswordAgent>> start(const redis::PasswordSource& source, const SignalBlock& signals);
  PasswordAgent(const PasswordAgent&) = delete;
  PasswordAgent& operator=(const PasswordAgent&) = delete;
  // Waits for its end if this process has forked it. REQUIRES: the other processes have let go of it, or end.
  ~PasswordAgent();

  pid_t pid() const { return pid_; }
  // In the process that has forked it: readable once it has ended; -1: that is known.
  int ended_fd() const { return process_.get(); }
  // The same agent in a new process, if somebody has killed the last one, which is reaped: whoever has asked in vain
  // asks again. False: it has ended because nobody needs it. Errors: system. REQUIRES: as start(); ended_fd() is
  // readable.
  Result<bool> start_again(const SignalBlock& signals);

  // A source that asks the agent, for a process that was forked after it, and that does not start it again. The agent
  // goes on with what takes longer than who asks has time, and the next one who asks gets that. Errors of reading:
  // those of `source`; config (nobody answers in time). REQUIRES: this object lives longer.
  redis::PasswordSource source();

  // This process does not ask it; it may start it again.
  void let_go();

 private:
  explicit PasswordAgent(const redis::PasswordSource& source) : source_(source) {}
  Result<void> fork_it(const SignalBlock& signals);
  Result<Secret> ask(const Until& until) const;

  redis::PasswordSource source_;  // what the agent reads
  SocketPair sockets_;            // the agent's end is theirs
  Pipe needed_;                   // the agent ends when nobody can write to it
  UniqueFd process_;              // pidfd
  pid_t pid_ = -1;
};

}  // namespace rlock::run
