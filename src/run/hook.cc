// SPDX-License-Identifier: MIT
#include "run/hook.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "run/command.h"
#include "run/no_process.h"

namespace rlock::run {

Result<pid_t> start_hook(const std::string& text, const std::vector<std::string>& environment,
                         const Folder& folder, pid_t group, const SignalBlock& signals) {
  // Before fork: other threads of ours may hold a lock of the allocator.
  const std::vector<std::string> argv = {"sh", "-c", "--", text};
  const auto arguments = exec_pointers(argv), variables = exec_pointers(environment);
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0) return fail_without_process();
  if (pid > 0) return pid;

  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(125);
  if (setpgid(0, group) != 0) setpgid(0, 0);  // of another session
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0 || dup2(null, STDIN_FILENO) < 0) _exit(125);
  dup2(STDERR_FILENO, STDOUT_FILENO);  // fails where there is no standard error: then nothing is printed
  if (!folder.enter()) _exit(125);
  signals.restore();
  execve("/bin/sh", arguments.data(), variables.data());
  _exit(127);
}

std::string trouble_of(int status) {
  if (WIFSIGNALED(status)) return "was killed by signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : "ended with " + std::to_string(WEXITSTATUS(status));
}

void report_hook_trouble(const std::string& job, bool fatal, const std::string& trouble) {
  log::write(fatal ? log::Level::error : log::Level::warning,
             job + ": " + (fatal ? "--on-acquire hook " : "--on-release hook ") + trouble +
                 (fatal ? "; the command was not started" : ""));
}

}  // namespace rlock::run
