// SPDX-License-Identifier: MIT
// The user's programs as processes: the command and the hooks; and what a process inherits.
#pragma once

#include "base/process.h"
#include "run/guard_state.h"
#include "run/signals.h"

namespace rlock::run {

// The current folder. A process leaves it, so that it can be unmounted, and returns to run the user's hooks. If its
// path cannot be entered, as after sudo(8) in another user's home, it is never left.
class Folder {
 public:
  static Folder current();

  const std::string& path() const { return path_; }  // "/" if it has none

  // Both return false with errno on failure, and are safe between fork(2) and exec(2).
  bool leave() const;
  bool enter() const;

 private:
  std::string path_ = "/";
  bool stays_ = false;
};

// What a process inherits: its folder, and descriptors besides the three standard streams.
class Inherited {
 public:
  // Tells what was inherited from what we have opened by FD_CLOEXEC, which each descriptor of ours has.
  static Inherited look();

  const Folder& folder() const { return folder_; }

  // Closes all of it, standard input and output, and leaves the folder, so that a pipe ends when the command closes it
  // and a file system can be unmounted. Standard error stays open for messages.
  void let_go() const;

 private:
  Folder folder_;
  std::vector<int> descriptors_;
};

// Checks that enough descriptors are left for everything that a guard or keeper will open: timers, events, new
// connections and name lookups, hooks, and /proc, where it finds what to kill. Later, in the middle of a job, a failure
// would mean that the lock is not renewed, or that a part of the tree is missed. Errors: system (mostly RLIMIT_NOFILE,
// or no pidfd_open(2), without which no guard notices the other's end).
Result<void> need_spare_fds();

struct Command {
  std::vector<std::string> argv;            // argv[0] is looked up in PATH, as a shell does
  std::vector<std::string> environment;     // NAME=value
  std::vector<std::string> late_variables;  // more, of which only the names are known before the lock
  std::vector<std::string> with_own_pid;    // names of more, whose value is the command's pid
};

// Why execve(2) fails with ENOENT for a file that exists: the interpreter of a script or the loader of a foreign binary
// is missing, or something that we cannot see. Returns an escaped text for people, or "" if `program` itself is not
// found in PATH. `folder` is where the command would have run.
std::string missing_interpreter(const std::string& program, const std::string& folder);

// How a command has ended, from its status of waitpid(2) and errno of exec(2).
JobEnd end_of_command(int status, int exec_errno);

// A command's process, which executes nothing before its gate opens.
class GatedCommand {
 public:
  // Forks it. It gets the environment of `command`, plus the late variable that `shared` has when the gate opens. It
  // stays in our process group, keeps our descriptors, gets the signal mask and dispositions that `signals` found, and
  // dies when the calling thread ends. `isolate`: in a PID namespace (pid_namespaces(7)). When that ends,
  // the kernel kills everything in it, and it ends with us, even if all guards are killed at the same instant. A user
  // without the right to do that gets a user namespace as well (user_namespaces(7)). `open`: with an open gate. It
  // waits until the guards have noted what is pending (GuardState::say_noted). Errors: system (the kernel or a
  // container may not allow a namespace). REQUIRES: this process is a subreaper with one thread, all signals are held
  // back, and `signals` reads SIGCHLD.
  static Result<GatedCommand> fork_from_here(const Command& command, const SignalBlock& signals, GuardState& shared,
                                             bool isolate, bool open);

  pid_t pid() const { return pid_; }

  // Lets it execute the command. If exec(2) fails, it sets shared.exec_errno and exits.
  void open_gate();
  bool gated() const { return static_cast<bool>(gate_); }
  // Makes it exit without executing anything.
  void close_gate() { gate_.reset(); }

  // Sends it a signal. Returns false if it runs as another user and refuses it. REQUIRES: it was not reaped yet.
  bool signal(int number) const;

  // Takes a status from waitpid(2) of any child. Returns true if it is the command that has ended.
  bool reaped(pid_t child, int status);
  const std::optional<int>& status() const { return status_; }  // from waitpid(2), once it has ended
  int shell_status() const;                                     // what $? would be; 0 before it has ended

  // Once it has ended: lets the processes left in its namespace end by themselves, or kills them. They then belong to
  // init, which exits with the last of them. May be called again.
  void tidy_namespace(bool kill);
  // Whether only init is left, and waits for tidy_namespace(). REQUIRES: the command has ended.
  bool only_init_left() const;
  bool has_namespace() const { return init_ > 0; }
  pid_t init() const { return init_; }  // -1 if there is no namespace
  int proc_failure() const { return proc_failure_; }

 private:
  Result<pid_t> fork_isolated(const SignalBlock& signals);

  pid_t pid_ = -1;
  std::optional<int> status_;
  UniqueFd life_;         // the namespace lives as long as any process has this open
  pid_t init_ = -1;       // its first process, our child, which only reaps others
  int proc_failure_ = 0;  // errno if its /proc still shows other processes, too
  bool told_ = false;     // init, that the command has ended
  UniqueFd gate_;
  std::vector<std::string> pids_;   // variables of program_
  std::optional<Program> program_;  // kept, because freeing it would copy pages that it shares with the new process
};

// Shell commands that run beside a job. Empty: none.
struct Hooks {
  std::string on_acquire, on_release, on_lost, on_wanted;
  milliseconds limit{};  // for each
};

// Runs `text` with /bin/sh -c in `folder`, as our child. It joins the process group `group`, such as that of the
// command, so that the terminal treats both alike; or a group of its own if `group` is 0 or in another session. Its
// standard input is empty, and its standard output is `output`: for hooks, standard error, because the real one belongs
// to the command. It has the signal mask and dispositions that `signals` found; none: no signal is held back. It dies
// when the calling thread ends. Errors: system.
Result<pid_t> start_shell(const std::string& text, const std::vector<std::string>& environment, const Folder& folder,
                          pid_t group, int output, const SignalBlock* signals);

}  // namespace rlock::run
