// SPDX-License-Identifier: MIT
#include "run/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/clock.h"
#include "base/log.h"
#include "run/command.h"
#include "run/signals.h"

namespace rlock::run {
namespace {

// A daemon serves others as well as its caller: CI systems end what a job has left behind by the variables of that job,
// which they read in /proc/PID/environ. It gets only what a program is found, loaded and set up by.
bool is_passed_on(std::string_view variable) {
  constexpr std::string_view kNames[] = {"PATH=", "HOME=", "TMPDIR=", "TZ=", "RLOCK_CONFIG="};
  constexpr std::string_view kKinds[] = {"XDG_", "LD_", "ASAN_", "UBSAN_"};
  const auto begins = [&](std::string_view start) { return variable.starts_with(start); };
  return std::ranges::any_of(kNames, begins) || std::ranges::any_of(kKinds, begins);
}

std::vector<char*> environment_of_daemon() {
  std::vector<char*> passed_on;
  for (char** entry = environ; entry && *entry; ++entry) {
    if (is_passed_on(*entry)) passed_on.push_back(*entry);
  }
  passed_on.push_back(nullptr);
  return passed_on;
}

[[noreturn]] void become_daemon(const std::vector<char*>& argv, const std::vector<char*>& environment,
                                const char* log_path, int alive) {
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
  execve("/proc/self/exe", argv.data(), environment.data());
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
  const auto arguments = exec_pointers(argv), environment = environment_of_daemon();
  const pid_t pid = fork();
  if (pid < 0) return std::unexpected(system_error("cannot start a process"));
  if (pid == 0) become_daemon(arguments, environment, log_path.c_str(), alive.get());
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
