// SPDX-License-Identifier: MIT
// The programs of the user as processes: the command, and hooks.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "run/guard_state.h"
#include "run/inherited.h"
#include "run/isolation.h"
#include "run/signals.h"

namespace rlock::run {

struct Command {
  std::vector<std::string> argv;         // argv[0] is looked up in PATH as a shell does
  std::vector<std::string> environment;  // NAME=value
  std::string late_variable;             // one more, which is known only with the lock
};

// Why execve(2) says ENOENT of a file that is there: the program that has to run it is missing, which a script's first
// line names, the loader of a foreign binary, or something that we cannot see. For people, escaped; empty where
// `program`, looked up in PATH as a shell does, is not there itself. `folder` is where the command would have run.
std::string missing_interpreter(const std::string& program, const std::string& folder);

// How a command has ended, by its status of waitpid(2), and by the errno of exec(2).
JobEnd end_of_command(int status, int exec_errno);

// A command that has been forked and waits for its gate to open before it executes anything.
class GatedCommand {
 public:
  // Forks. Its environment is that of `command`, and the late variable that `shared` has when the gate opens. The new
  // process stays in our process group, keeps our descriptors, has the signal mask and dispositions that `signals`
  // found, and dies when the calling thread ends. `isolate`: in a namespace of its own, see run/isolation.h. `open`:
  // the gate is open from the beginning. Errors: system. REQUIRES: a guard becomes a subreaper before; all signals are
  // held back.
  static Result<GatedCommand> fork_from_here(const Command& command, const SignalBlock& signals, GuardState& shared,
                                             bool isolate, bool open);

  pid_t pid() const { return pid_; }

  // Lets it execute, if it waits for that. Its exit(2) tells the rest; shared.exec_errno says if it could not be
  // executed.
  void open_gate();
  bool gated() const { return static_cast<bool>(gate_); }
  // It never executes anything, and ends.
  void close_gate() { gate_.reset(); }

  // Notes the signals that have come: right after the fork, those that it has not had.
  void note_missed() { came_before_ = HeldSignals::now(); }
  // Whether a signal of that number was noted. Once.
  bool missed(int signal) { return came_before_.take(signal); }

  // Sends it a signal. False: it runs as another user, and refuses it. REQUIRES: it was not waited for.
  bool signal(int number) const;

  // Takes the word of waitpid(2) about a child of ours. True: it is the command that has ended.
  bool reaped(pid_t child, int status);
  const std::optional<int>& status() const { return status_; }  // of waitpid(2), once it has ended
  int shell_status() const;                                     // as $? would show it; 0 before it has ended

  // The processes left in its namespace are to end by themselves, or is killed.
  void tidy_namespace(bool kill);
  // Nothing runs in its namespace but the first process of it, which waits for us. REQUIRES: the command has ended.
  bool only_init_left() const;
  bool has_namespace() const { return isolation_.init > 0; }
  pid_t init() const { return isolation_.init; }  // the first process of its namespace; -1: there is none
  int proc_failure() const { return isolation_.proc_failure; }

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
  Isolation isolation_;
  UniqueFd gate_;
  HeldSignals came_before_;
};

// Shell texts that run beside a job: --on-acquire, --on-release, --on-lost.
struct Hooks {
  std::string on_acquire, on_release, on_lost;  // empty: none
  milliseconds limit{};                         // for each
};

// Starts `text` by /bin/sh -c in `folder`, as our child in the process group `group`, which is the command's: the
// terminal treats it as it would the command. In a group of its own if that group is of another session. Standard input
// is empty, and what it prints goes to standard error, because standard output is the command's. It dies when the
// calling thread ends. Errors: system.
Result<pid_t> start_hook(const std::string& text, const std::vector<std::string>& environment, const Folder& folder,
                         pid_t group, const SignalBlock& signals);

// Says that a hook has failed. `fatal`: it ran before the command.
void report_hook_trouble(const std::string& job, bool fatal, const std::string& trouble);

}  // namespace rlock::run
