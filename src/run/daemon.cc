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

#include "base/wait.h"
#include "run/command.h"
#include "run/signals.h"

namespace rlock::run {
namespace {

// A daemon serves others as well as its caller: CI systems end what a job has left behind by the variables of that job,
// which they read in /proc/PID/environ. It gets only what a program is found, loaded and set up by.
bool is_passed_on(std::string_view variable) {
  constexpr std::string_view kNames[] = {"PATH=", "HOME=", "TMPDIR=", "TZ="};
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
// A program that lives that long has come up; and how often a program's surroundings are looked at.
constexpr milliseconds kLook = 1s;

milliseconds pause_after(int deaths) {
  constexpr milliseconds first = 100ms, longest = 5s;
  return deaths > 6 ? longest : std::min(longest, first * (1 << (deaths - 1)));
}

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

Result<int> keep_running(const std::vector<std::string>& argv, const Upkeep& upkeep) {
  using Advice = Upkeep::Advice;
  SignalBlock signals = RLOCK_TRY(SignalBlock::begin());
  RLOCK_TRY(signals.hold_all());
  const auto arguments = exec_pointers(argv);
  bool asked_to_end = false;
  const auto take_signals = [&](pid_t pid) {
    while (const auto signal = signals.next()) {
      if (signal->number != SIGTERM && signal->number != SIGINT) continue;
      asked_to_end = true;
      if (pid > 0) kill(pid, SIGTERM);
    }
  };
  for (int times = 0;;) {
    const pid_t pid = RLOCK_TRY(start(arguments, signals));
    const TimePoint settled = BootClock::now() + kLook;
    TimePoint look_at = settled;
    int status = 0;
    Advice advice = Advice::go_on;
    while (waitpid(pid, &status, WNOHANG) == 0) {
      wait_for(signals.fd(), POLLIN, {look_at});
      take_signals(pid);
      if (BootClock::now() < look_at) continue;
      look_at = BootClock::now() + kLook;
      if (advice == Advice::go_on) advice = upkeep.look();
      if (advice != Advice::go_on) kill(pid, advice == Advice::restart ? SIGTERM : SIGKILL);
    }
    if (advice == Advice::give_up) return fail(Error::Code::unavailable, argv[0] + " was stopped");
    if (asked_to_end && !WIFEXITED(status)) return 0;
    if (advice == Advice::restart && !asked_to_end) continue;
    if (WIFEXITED(status)) {
      if (WEXITSTATUS(status) != kNotFound) return WEXITSTATUS(status);
      return fail(Error::Code::unavailable, argv[0] + ": cannot be run; install the package redis-server");
    }
    times = BootClock::now() < settled ? times + 1 : 1;
    const milliseconds pause = pause_after(times);
    upkeep.died(WTERMSIG(status), times, pause);
    for (const TimePoint again = BootClock::now() + pause; !asked_to_end && BootClock::now() < again;) {
      wait_for(signals.fd(), POLLIN, {again});
      take_signals(-1);
    }
    if (asked_to_end) return 0;
  }
}

}  // namespace rlock::run
