// SPDX-License-Identifier: MIT
#include "run/password_command.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

namespace rlock::run {
namespace {

constexpr milliseconds kLongestRun = 10s;
constexpr milliseconds kTimeToDie = 100ms;  // after SIGKILL, before we look whether it was permitted

std::unexpected<Error> no_password(const std::string& why) {
  return fail(Error::Code::config, "password command: " + why);
}

// Leads the command's group, and kills it if the process that reads the password ends first, as by a signal.
[[noreturn]] void become_watch(pid_t parent) {
  hold_all_signals_back();
  setpgid(0, 0);
  const UniqueFd reader = open_process(parent);
  close_fds_but(reader.get());  // otherwise a reader of our output would wait for this process
  if (reader && getppid() == parent) wait_for(reader.get(), POLLIN, Until{});
  kill(-getpid(), SIGKILL);
  _exit(0);
}

// A running command and its process group, which is killed on destruction, except for processes that have left it.
class Group {
 public:
  ~Group() {
    end();
    if (watch_ > 0) reap(watch_);
  }

  // The watch comes first, because this process may be killed at any time.
  Result<void> start(const PasswordCommand& command, int output) {
    const auto watch = spawn([parent = getpid()] { become_watch(parent); });
    if (!watch) return no_password(watch.error().message);
    watch_ = *watch;
    setpgid(watch_, watch_);  // as the child does, because either may come first
    const auto pid = start_shell(command.text, command.environment, command.folder, watch_, output, nullptr);
    if (!pid) return no_password(pid.error().message);
    command_ = *pid;
    setpgid(command_, watch_);
    ended_ = open_process(command_);
    return ended_ ? Result<void>() : no_password(system_error("pidfd_open").message);
  }

  // Readable once the command has ended.
  int ended_fd() const { return ended_.get(); }

  // Kills it and returns the command's status from waitpid(2); 0 if called again. None if the command has become
  // another user, as with sudo, so that we may not stop it.
  std::optional<int> end() {
    while (watch_ > 0) {
      kill(-watch_, SIGKILL);
      if (command_ < 0) break;
      const bool ours = kill(command_, SIGKILL) == 0 || errno != EPERM;
      if (wait_for(ended_.get(), POLLIN, Until{}.at_most(kTimeToDie)) == WaitEnd::ready) break;
      if (!ours) return {};
      if (!ended_) break;  // reap() waits for it
    }
    // As long as it is not reaped, the watch reserves the group's number.
    if (watch_ > 0) reap(std::exchange(watch_, -1));
    return command_ < 0 ? 0 : reap(std::exchange(command_, -1));
  }

 private:
  pid_t watch_ = -1, command_ = -1;
  UniqueFd ended_;
};

// `late`: the message if that takes too long.
Result<void> await(int fd, const Until& until, const char* late = "password command: it did not end in time") {
  const WaitEnd end = wait_for(fd, POLLIN, until);
  if (end == WaitEnd::interrupted) return interrupted();
  return end == WaitEnd::ready ? Result<void>() : fail(Error::Code::config, late);
}

// Reads to the end, and returns the number of bytes.
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

constexpr milliseconds kTimeForAgentToEnd = 1s;
// An answer that nobody took in time may be used by the next who asks, this long after the first request.
constexpr milliseconds kFresh = 15s;

// Precedes a password, or the error message in its place.
struct Head {
  TimePoint asked;
  bool has_password;
};

// Sends a packet of a head and a text. If nobody takes it, it is lost.
void answer(int socket, TimePoint asked, const Result<Secret>& password) {
  Head head{asked, password.has_value()};
  const std::string_view text = password ? password->text() : std::string_view(password.error().message);
  const iovec packet[] = {{&head, sizeof head},
                          {const_cast<char*>(text.data()), std::min(text.size(), Secret::kLongest)}};
  [[maybe_unused]] const ssize_t sent = writev(socket, packet, std::size(packet));
}

// All requests that come while the password is read get the same answer.
[[noreturn]] void serve(const redis::PasswordSource& source, int socket, int needed) {
  const Until end{TimePoint::max(), needed};
  char request;
  while (wait_for(socket, POLLIN, end) == WaitEnd::ready && recv(socket, &request, 1, MSG_DONTWAIT) == 1) {
    const TimePoint asked = BootClock::now();
    const auto password = source.read(end);
    do {
      answer(socket, asked, password);
    } while (recv(socket, &request, 1, MSG_DONTWAIT) == 1);
  }
  _exit(0);
}

[[noreturn]] void become_agent(const redis::PasswordSource& source, int socket, int needed) {
  setsid();
  close_fds_but(socket, needed, STDERR_FILENO + 1);
  point_at_null({STDIN_FILENO, STDOUT_FILENO});
  if (Folder::current().leave()) serve(source, socket, needed);
  _exit(1);
}

}  // namespace

Result<Secret> run_password_command(const PasswordCommand& command, const Until& until) {
  const Until end = until.at_most(kLongestRun);
  auto output = Pipe::make();
  if (!output) return no_password(output.error().message);
  Group group;
  RLOCK_TRY(group.start(command, output->writer.get()));
  output->writer.reset();
  auto password = Secret::written(Secret::kLongest + 1, [&](std::span<char> out) -> Result<std::size_t> {
    const std::size_t length = RLOCK_TRY(read_all(output->reader.get(), out, end));
    if (length > Secret::kLongest) {
      return no_password("it printed more than " + std::to_string(Secret::kLongest) + " bytes");
    }
    RLOCK_TRY(await(group.ended_fd(), end));
    if (const std::string trouble = trouble_of(group.end().value_or(0)); !trouble.empty()) {
      return no_password("it " + trouble);
    }
    const std::size_t without = without_newline({out.data(), length}).size();
    if (without == 0) return no_password("it printed nothing");
    return without;
  });
  if (!password && !group.end()) {
    password.error().message += ", and could not be stopped, because it runs as another user";
  }
  return password;
}

Result<std::unique_ptr<PasswordAgent>> PasswordAgent::start(const redis::PasswordSource& source,
                                                            const SignalBlock& signals) {
  std::unique_ptr<PasswordAgent> agent(new PasswordAgent(source));
  agent->sockets_ = RLOCK_TRY(SocketPair::make(SOCK_NONBLOCK));
  agent->needed_ = RLOCK_TRY(Pipe::make());
  RLOCK_TRY(agent->fork_it(signals));
  return agent;
}

Result<void> PasswordAgent::fork_it(const SignalBlock& signals) {
  pid_ = RLOCK_TRY(signals.fork_held_back());
  if (pid_ == 0) become_agent(source_, sockets_.theirs.get(), needed_.reader.get());
  process_ = open_process(pid_);
  if (!process_) return std::unexpected(system_error("pidfd_open"));
  return {};
}

Result<bool> PasswordAgent::start_again(const SignalBlock& signals) {
  siginfo_t end{};
  const bool known = waitid(P_PIDFD, static_cast<id_t>(process_.get()), &end, WEXITED | WNOHANG) == 0;
  process_.reset();
  pid_ = -1;
  if (known && end.si_code == CLD_EXITED) return false;
  RLOCK_TRY(fork_it(signals));
  return true;
}

PasswordAgent::~PasswordAgent() {
  let_go();
  if (!process_) return;
  if (wait_for(process_.get(), POLLIN, Until{}.at_most(kTimeForAgentToEnd)) != WaitEnd::ready) {
    signal_process(process_.get(), SIGKILL);
  }
  siginfo_t unused;
  waitid(P_PIDFD, static_cast<id_t>(process_.get()), &unused, WEXITED);
}

redis::PasswordSource PasswordAgent::source() {
  process_.reset();
  sockets_.theirs.reset();
  needed_.reader.reset();
  return {[this](const Until& until) { return ask(until); }, false};
}

void PasswordAgent::let_go() {
  sockets_.ours.reset();
  needed_.writer.reset();
}

// The first reader gets the next answer, which may be for an earlier request.
Result<Secret> PasswordAgent::ask(const Until& until) const {
  const auto ended = [] { return fail(Error::Code::config, "the process that runs the password command is gone"); };
  if (send(sockets_.ours.get(), "?", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN) return ended();
  for (;;) {
    RLOCK_TRY(await(sockets_.ours.get(), until, "the password command did not end in time"));
    Head head{};
    ssize_t length = 0;
    int failure = 0;
    Secret text = RLOCK_TRY(Secret::written(Secret::kLongest, [&](std::span<char> out) -> Result<std::size_t> {
      const iovec packet[] = {{&head, sizeof head}, {out.data(), out.size()}};
      length = readv(sockets_.ours.get(), packet, std::size(packet));
      failure = errno;
      return static_cast<std::size_t>(std::max<ssize_t>(length - static_cast<ssize_t>(sizeof head), 0));
    }));
    if (length < 0 && failure == EAGAIN) continue;  // another thread was faster
    if (length <= 0) return ended();
    if (head.asked + kFresh < BootClock::now()) continue;
    if (head.has_password) return text;
    return fail(Error::Code::config, std::string(text.text()));
  }
}

}  // namespace rlock::run
