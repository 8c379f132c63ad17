// SPDX-License-Identifier: MIT
#include "run/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/process.h"
#include "base/wait.h"
#include "run/signals.h"

namespace rlock::run {
namespace {

// The daemon serves others as well, but CI systems kill what a job has left behind if it has the job's variables, which
// they read in /proc/PID/environ. So it gets only those with which a program is found, loaded and set up.
bool is_passed_on(std::string_view variable) {
  constexpr std::string_view kNames[] = {"PATH=", "HOME=", "TMPDIR=", "TZ="};
  constexpr std::string_view kKinds[] = {"XDG_", "LD_", "ASAN_", "UBSAN_"};
  const auto begins = [&](std::string_view start) { return variable.starts_with(start); };
  return std::ranges::any_of(kNames, begins) || std::ranges::any_of(kKinds, begins);
}

constexpr int kNotFound = 127;
// How long a program must live to count as started, and how often `look` is called.
constexpr milliseconds kLook = 1s;

milliseconds pause_after(int deaths) {
  constexpr milliseconds first = 100ms, longest = 5s;
  return deaths > 6 ? longest : std::min(longest, first * (1 << (deaths - 1)));
}

// A program that is started again when it dies.
class Restarted {
 public:
  Restarted(const std::vector<std::string>& argv, const Upkeep& upkeep, SignalBlock& signals)
      : name_(argv[0]), program_(argv[0], argv, own_environment()), upkeep_(upkeep), signals_(signals) {}

  // Returns its exit status, or 0 if a signal has asked it to end.
  Result<int> run() {
    for (;;) {
      const TimePoint settled = BootClock::now() + kLook;
      pid_ = RLOCK_TRY(spawn([this] {
        signals_.restore();
        program_.exec();
      }));
      const int status = look_after();
      if (const auto end = RLOCK_TRY(end_of(status))) return *end;
      if (advice_ == Upkeep::Advice::restart && !asked_to_end_) continue;
      deaths_ = BootClock::now() < settled ? deaths_ + 1 : 1;
      const milliseconds pause = pause_after(deaths_);
      upkeep_.died(WTERMSIG(status), deaths_, pause);
      rest(pause);
      if (asked_to_end_) return 0;
    }
  }

 private:
  // Waits until it has died. Returns its status from waitpid(2).
  int look_after() {
    TimePoint look_at = BootClock::now() + kLook;
    int status = 0;
    advice_ = Upkeep::Advice::go_on;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      wait_for(signals_.fd(), POLLIN, {look_at});
      take_signals();
      if (BootClock::now() < look_at) continue;
      look_at = BootClock::now() + kLook;
      if (advice_ == Upkeep::Advice::go_on) advice_ = upkeep_.look();
      if (advice_ != Upkeep::Advice::go_on) kill(pid_, advice_ == Upkeep::Advice::restart ? SIGTERM : SIGKILL);
    }
    pid_ = -1;
    return status;
  }

  // None if it has to run again.
  Result<std::optional<int>> end_of(int status) const {
    if (advice_ == Upkeep::Advice::give_up) return fail(Error::Code::unavailable, name_ + " was stopped");
    if (asked_to_end_ && !WIFEXITED(status)) return 0;
    if ((advice_ == Upkeep::Advice::restart && !asked_to_end_) || !WIFEXITED(status)) return std::nullopt;
    if (WEXITSTATUS(status) != kNotFound) return WEXITSTATUS(status);
    return fail(Error::Code::unavailable, name_ + ": cannot be run; install the package redis-server");
  }

  void rest(milliseconds pause) {
    for (const TimePoint again = BootClock::now() + pause; !asked_to_end_ && BootClock::now() < again;) {
      wait_for(signals_.fd(), POLLIN, {again});
      take_signals();
    }
  }

  void take_signals() {
    while (const auto signal = signals_.next()) {
      if (signal->number != SIGTERM && signal->number != SIGINT) continue;
      asked_to_end_ = true;
      if (pid_ > 0) kill(pid_, SIGTERM);
    }
  }

  const std::string& name_;
  const Program program_;
  const Upkeep& upkeep_;
  SignalBlock& signals_;
  pid_t pid_ = -1;
  Upkeep::Advice advice_ = Upkeep::Advice::go_on;
  bool asked_to_end_ = false;
  int deaths_ = 0;  // in a row, each soon after the start
};

}  // namespace

Result<UniqueFd> launch_daemon(const std::vector<std::string>& argv, const std::string& log_path) {
  Pipe alive = RLOCK_TRY(Pipe::make());
  std::vector<std::string> environment = own_environment();
  std::erase_if(environment, [](const std::string& variable) { return !is_passed_on(variable); });
  const Program program("/proc/self/exe", argv, std::move(environment));
  RLOCK_TRY(spawn_daemon([&] {
    if (chdir("/") != 0) return;
    point_at_null({STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO});
    const UniqueFd log(open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600));
    if (log) dup2(log.get(), STDERR_FILENO);
    dup2(alive.writer.get(), STDERR_FILENO + 1);
    close_fds(STDERR_FILENO + 2);
    for (int signal = 1; signal <= SIGRTMAX; ++signal) ::signal(signal, SIG_DFL);
    let_all_signals_through();
    program.exec();
  }));
  return std::move(alive.reader);
}

Result<int> keep_running(const std::vector<std::string>& argv, const Upkeep& upkeep) {
  SignalBlock signals = RLOCK_TRY(SignalBlock::begin());
  RLOCK_TRY(signals.hold_all());
  return Restarted(argv, upkeep, signals).run();
}

}  // namespace rlock::run
