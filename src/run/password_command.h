// SPDX-License-Identifier: MIT
// A shell command that prints the password, such as a token that is valid for some minutes.
#pragma once

#include "redis/endpoint.h"
#include "run/command.h"
#include "run/signals.h"

namespace rlock::run {

struct PasswordCommand {
  std::string text;
  std::vector<std::string> environment;  // NAME=value; without secrets
  Folder folder;
};

// Runs the text with /bin/sh -c and returns its output, without a newline at the end. It has its own process group, an
// empty standard input, and our standard error. After it ends, after 10 s, or at `until`, the whole group is killed,
// except for processes of other users. May be called by several threads. Errors: config (it cannot be started, failed,
// did not end in time, or printed nothing or more than Secret::kLongest bytes); interrupted.
Result<Secret> run_password_command(const PasswordCommand& command, const Until& until);

// The process that runs the password command for a monitor. The monitor cannot do so itself, because all of its
// children are the job's tree, which it kills and waits for.
class PasswordAgent {
 public:
  // Forks it. It is in its own session, holds all signals back, has no connection, and ends when all processes have let
  // go of it. Errors: system. REQUIRES: this process has one thread.
  static Result<std::unique_ptr<PasswordAgent>> start(const redis::PasswordSource& source, const SignalBlock& signals);
  // Waits for it to end if this process has forked it. REQUIRES: the other processes have let go of it, or end.
  ~PasswordAgent();

  pid_t pid() const { return pid_; }
  // In the process that has forked it: readable once it has ended; -1 if that is known.
  int ended_fd() const { return process_.get(); }
  // Starts the agent in a new process if something has killed the last one, which is reaped. Requests without an
  // answer are sent again. Returns false if it has ended because nobody needs it. Errors: system. REQUIRES: as start(),
  // and ended_fd() is readable.
  Result<bool> start_again(const SignalBlock& signals);

  // A source that asks the agent, for a process that was forked after it and does not start it again. If reading takes
  // longer than the time of the one who asks, the agent continues, and the next one gets the result. Errors of reading:
  // those of `source`; config (no answer in time). REQUIRES: this object outlives it.
  redis::PasswordSource source();

  // This process will not ask it, but may start it again.
  void let_go();

 private:
  explicit PasswordAgent(const redis::PasswordSource& source) : source_(source) {}
  Result<void> fork_it(const SignalBlock& signals);
  Result<Secret> ask(const Until& until) const;

  redis::PasswordSource source_;  // what the agent reads
  SocketPair sockets_;            // the agent's end is theirs
  Pipe needed_;                   // the agent ends when no process has its writer open
  UniqueFd process_;              // pidfd
  pid_t pid_ = -1;
};

}  // namespace rlock::run
