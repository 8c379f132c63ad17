// SPDX-License-Identifier: MIT
#include "run/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>

#include "base/clock.h"
#include "base/log.h"
#include "run/command.h"
#include "run/signals.h"

namespace rlock::run {
namespace {

[[noreturn]] void become_daemon(const std::vector<char*>& argv, const char* log_path, int alive) {
  setsid();
  if (fork() != 0) _exit(0);
  umask(077);
  if (chdir("/") != 0) _exit(126);
  const int null = open("/dev/null", O_RDWR);
  const int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
  dup2(null, STDIN_FILENO);
  dup2(null, STDOUT_FILENO);
  dup2(log >= 0 ? log : null, STDERR_FILENO);
  dup2(alive, STDERR_FILENO + 1);
  close_range(STDERR_FILENO + 2, ~0u, 0);
  for (int signal = 1; signal <= SIGRTMAX; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv("/proc/self/exe", argv.data());
  _exit(126);
}

constexpr int kNotFound = 127;

Result<pid_t> start(const std::vector<char*>& argv, const SignalBlock& signals) {
  const pid_t pid = fork();
  if (pid < 0) return std::unexpected(system_error("cannot start a process"));
  if (pid > 0) return pid;
  signals.restore();
  execvp(argv[0], argv.data());
  _exit(kNotFound);
}

}  // namespace

Result<UniqueFd> launch_daemon(const std::vector<std::string>& argv, const std::string& log_path) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(system_error("pipe"));
  UniqueFd ended(ends[0]);
  const UniqueFd alive(ends[1]);
  const auto arguments = exec_pointers(argv);
  const pid_t pid = fork();
  if (pid < 0) return std::unexpected(system_error("cannot start a process"));
  if (pid == 0) become_daemon(arguments, log_path.c_str(), alive.get());
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return ended;
}

Result<int> keep_running(const std::vector<std::string>& argv) {
  SignalBlock signals = RLOCK_TRY(SignalBlock::begin());
  RLOCK_TRY(signals.hold_all());
  const auto arguments = exec_pointers(argv);
  for (bool asked_to_end = false;;) {
    const pid_t pid = RLOCK_TRY(start(arguments, signals));
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
      wait_for(signals.fd(), POLLIN, {});
      while (const auto signal = signals.next()) {
        if (signal->number != SIGTERM && signal->number != SIGINT) continue;
        asked_to_end = true;
        kill(pid, SIGTERM);
      }
    }
    if (WIFEXITED(status)) {
      if (WEXITSTATUS(status) != kNotFound) return WEXITSTATUS(status);
      return fail(Error::Code::unavailable, argv[0] + ": cannot be run; install the package redis-server");
    }
    if (asked_to_end) return 0;
    log::warning(argv[0] + " was killed by signal " + std::to_string(WTERMSIG(status)) + "; starting it again");
  }
}

}  // namespace rlock::run
