// SPDX-License-Identifier: MIT
#include "run/password_command.h"

#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <optional>
#include <span>
#include <utility>

#include "base/process.h"
#include "base/text.h"
#include "run/signals.h"

namespace rlock::run {
namespace {

constexpr milliseconds kLongestRun = 10s;
constexpr milliseconds kTimeToDie = 100ms;  // of one that is killed, before we look whether it may be

std::unexpected<Error> no_password(const std::string& why) {
  return fail(Error::Code::config, "password command: " + why);
}

// In the group of a command: kills it if the thread that reads the password ends before, as when a signal ends rlock.
[[noreturn]] void become_watch(pid_t group, pid_t parent) {
  hold_sigterm_back();
  setpgid(0, group);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  close_fds(0);  // nobody who reads our output to its end waits for this
  if (getppid() == parent) wait_for_sigterm();
  kill(-group, SIGKILL);
  _exit(0);
}

// The group of a command that runs. Nothing of it is left when this ends, but for what has left the group.
class Group {
 public:
  explicit Group(pid_t leader) : leader_(leader), ended_(open_process(leader)) {
    watch_ = spawn([&, parent = getpid()] { become_watch(leader, parent); }).value_or(-1);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() { end(); }

  // Readable once the leader has ended.
  int ended_fd() const { return ended_.get(); }

  // Kills it, and returns the status of its leader as waitpid(2) has it. Once; 0 from then on. None: the leader has become
  // another user, as sudo does, and we may not stop it.
  std::optional<int> end() {
    if (leader_ < 0) return 0;
    if (watch_ > 0) kill(watch_, SIGKILL);
    if (watch_ > 0) reap(watch_);
    watch_ = -1;
    // One that has ended keeps its status; a zombie keeps the number of the group.
    for (;;) {
      kill(-leader_, SIGKILL);
      const bool ours = kill(leader_, SIGKILL) == 0 || errno != EPERM;
      if (wait_for(ended_.get(), POLLIN, Until{}.at_most(kTimeToDie)) == WaitEnd::ready) break;
      if (!ours) return {};
    }
    return reap(std::exchange(leader_, -1));
  }

 private:
  pid_t leader_, watch_ = -1;
  UniqueFd ended_;
};

Result<pid_t> start(const PasswordCommand& command, int output) {
  const Program shell = Program::shell(command.text, command.environment);
  const auto pid = spawn([&, parent = getpid()] {
    die_with(parent);
    setpgid(0, 0);
    if (!point_at_null({STDIN_FILENO}) || dup2(output, STDOUT_FILENO) < 0 || !command.folder.enter()) _exit(125);
    let_all_signals_through();
    shell.exec();
  });
  if (!pid) return no_password(pid.error().message);
  setpgid(*pid, *pid);  // as the child does: whichever comes first
  return pid;
}

Result<void> await(int fd, const Until& until) {
  switch (wait_for(fd, POLLIN, until)) {
    case WaitEnd::ready: return {};
    case WaitEnd::interrupted: return fail(Error::Code::interrupted, "interrupted");
    case WaitEnd::deadline: break;
  }
  return no_password("it did not end in time");
}

// To the end; returns how much there was.
Result<std::size_t> read_all(int fd, std::span<char> out, const Until& until) {
  for (std::size_t length = 0;;) {
    RLOCK_TRY(await(fd, until));
    if (length == out.size()) return length;
    const ssize_t got = read(fd, out.data() + length, out.size() - length);
    if (got == 0) return length;
    if (got > 0) length += static_cast<std::size_t>(got);
    if (got < 0 && errno != EINTR) return no_password("its output cannot be read: " + errno_text(errno));
  }
}

}  // namespace

Result<Secret> run_password_command(const PasswordCommand& command, const Until& until) {
  const Until end = until.at_most(kLongestRun);
  auto output = Pipe::make();
  if (!output) return no_password(output.error().message);
  Group group(RLOCK_TRY(start(command, output->writer.get())));
  output->writer.reset();
  auto password = Secret::written(Secret::kLongest + 1, [&](std::span<char> out) -> Result<std::size_t> {
    const std::size_t length = RLOCK_TRY(read_all(output->reader.get(), out, end));
    if (length > Secret::kLongest) {
      return no_password("it printed more than " + std::to_string(Secret::kLongest) + " bytes");
    }
    RLOCK_TRY(await(group.ended_fd(), end));
    if (const std::string trouble = trouble_of(group.end().value_or(0)); !trouble.empty()) return no_password("it " + trouble);
    const std::size_t without = without_newline({out.data(), length}).size();
    if (without == 0) return no_password("it printed nothing");
    return without;
  });
  if (!password && !group.end()) password.error().message += ", and could not be stopped: it runs as another user";
  return password;
}

}  // namespace rlock::run
