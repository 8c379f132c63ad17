// SPDX-License-Identifier: MIT
// The user's programs as processes: the command and the hooks.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/unique_fd.h"
#include "run/guard_state.h"
#include "run/inherited.h"
#include "run/signals.h"

namespace rlock::run {

struct Command {
  std::vector<std::string> argv;            // argv[0] is looked up in PATH, as a shell does
  std::vector<std::string> environment;     // NAME=value
  std::vector<std::string> late_variables;  // more, of which only the names are known before the lock
};

// Why execve(2) fails with ENOENT for a file that exists: the interpreter of a script or the loader of a foreign binary
// is missing, or something that we cannot see. Returns an escaped text for people, or "" if `program` itself is not
// found in PATH. `folder` is where the command would have run.
std::string missing_interpreter(const std::string& program, const std::string& folder);

// How a command has ended, from its status of waitpid(2) and errno of exec(2).
JobEnd end_of_command(int status, int exec_errno);

// A PID namespace for the command (pid_namespaces(7)). When it ends, the kernel kills everything in it, and it ends
// with us, even if all guards are killed at the same instant.
struct Isolation {
  UniqueFd life;         // the namespace lives as long as any process has this open
  pid_t init = -1;       // its first process, our child, which only reaps others
  int proc_failure = 0;  // errno if /proc still shows other processes, too

  // Call this once the command has been reaped. The processes left in the namespace then belong to init, which exits
  // with the last of them. May be called again.
  void command_ended();

 private:
  bool told_ = false;
};

// Like fork(2), but the child is in a new PID namespace, although it is our child. Returns 0 in it. A user without the
// right to do that gets a user namespace as well (user_namespaces(7)). Errors: system (the kernel or a container does
// not allow it). REQUIRES: this process has one thread and is a subreaper.
Result<pid_t> fork_isolated(Isolation& isolation);

// A command's process, which executes nothing before its gate opens.
class GatedCommand {
 public:
  // Forks it. It gets the environment of `command`, plus the late variable that `shared` has when the gate opens. It
  // stays in our process group, keeps our descriptors, gets the signal mask and dispositions that `signals` found, and
  // dies when the calling thread ends. `isolate`: in a namespace (fork_isolated). `open`: with an open gate. Errors:
  // system. REQUIRES: this process is a subreaper, and all signals are held back.
  static Result<GatedCommand> fork_from_here(const Command& command, const SignalBlock& signals, GuardState& shared,
                                             bool isolate, bool open);

  pid_t pid() const { return pid_; }

  // Lets it execute the command. If exec(2) fails, it sets shared.exec_errno and exits.
  void open_gate();
  bool gated() const { return static_cast<bool>(gate_); }
  // Makes it exit without executing anything.
  void close_gate() { gate_.reset(); }

  // Call this right after the fork: remembers the signals that came before, which it did not receive.
  void note_missed() { came_before_ = HeldSignals::now(); }
  // Whether it missed that signal. True only once for each signal.
  bool missed(int signal) { return came_before_.take(signal); }

  // Sends it a signal. Returns false if it runs as another user and refuses it. REQUIRES: it was not reaped yet.
  bool signal(int number) const;

  // Takes a status from waitpid(2) of any child. Returns true if it is the command that has ended.
  bool reaped(pid_t child, int status);
  const std::optional<int>& status() const { return status_; }  // from waitpid(2), once it has ended
  int shell_status() const;                                     // what $? would be; 0 before it has ended

  // Lets the processes left in its namespace end by themselves, or kills them.
  void tidy_namespace(bool kill);
  // Whether only init is left in its namespace, and waits for us. REQUIRES: the command has ended.
  bool only_init_left() const;
  bool has_namespace() const { return isolation_.init > 0; }
  pid_t init() const { return isolation_.init; }  // the first process of the namespace; -1 if there is none
  int proc_failure() const { return isolation_.proc_failure; }

 private:
  pid_t pid_ = -1;
  std::optional<int> status_;
  Isolation isolation_;
  UniqueFd gate_;
  HeldSignals came_before_;
  std::optional<Program> program_;  // kept, because freeing it would copy pages that it shares with the new process
};

// Shell commands that run beside a job. Empty: none.
struct Hooks {
  std::string on_acquire, on_release, on_lost;
  milliseconds limit{};  // for each
};

// Runs `text` with /bin/sh -c in `folder`, as our child. It joins the command's process group `group`, so that the
// terminal treats both alike, or a group of its own if `group` is in another session. Its standard input is empty, and
// its standard output is standard error, because the real one belongs to the command. It dies when the calling thread
// ends. Errors: system.
Result<pid_t> start_hook(const std::string& text, const std::vector<std::string>& environment, const Folder& folder,
                         pid_t group, const SignalBlock& signals);

}  // namespace rlock::run
