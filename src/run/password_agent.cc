// SPDX-License-Identifier: MIT
#include "run/password_agent.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/process.h"
#include "run/inherited.h"

namespace rlock::run {
namespace {

constexpr milliseconds kTimeForAgentToEnd = 1s;
// An answer that nobody took in time is good for who asks next, for so long after it was asked for.
constexpr milliseconds kFresh = 15s;

// In front of a password, or of what is to be said in place of one.
struct Head {
  TimePoint asked;
  bool has_password;
};

// A head and a text as sendmsg(2) and recvmsg(2) want them: one packet.
struct Answer {
  Answer(Head& head, const char* text, std::size_t size)
      : parts{{&head, sizeof head}, {const_cast<char*>(text), size}} {
    header.msg_iov = parts;
    header.msg_iovlen = std::size(parts);
  }

  iovec parts[2];
  msghdr header{};
};

void close_all_but(int one, int other) {
  const auto [first, second] = std::minmax(one, other);
  const auto close_between = [](int after, unsigned before) {
    const auto from = static_cast<unsigned>(after) + 1;
    if (from < before) close_fds(from, before - 1);
  };
  close_between(STDERR_FILENO, static_cast<unsigned>(first));
  close_between(first, static_cast<unsigned>(second));
  close_between(second, ~0u);
}

// Nobody has to take it.
void answer(int socket, TimePoint asked, const Result<Secret>& password) {
  Head head{asked, password.has_value()};
  const std::string_view text = password ? password->text() : std::string_view(password.error().message);
  const Answer packet(head, text.data(), std::min(text.size(), Secret::kLongest));
  sendmsg(socket, &packet.header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// All who ask while the password is read get the same answer.
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
  close_all_but(socket, needed);
  point_at_null({STDIN_FILENO, STDOUT_FILENO});
  if (Folder::current().leave()) serve(source, socket, needed);
  _exit(1);
}

}  // namespace

Result<std::unique_ptr<PasswordAgent>> PasswordAgent::start(const redis::PasswordSource& source,
                                                            const SignalBlock& signals) {
  std::unique_ptr<PasswordAgent> agent(new PasswordAgent(source));
  agent->sockets_ = RLOCK_TRY(SocketPair::make(0));
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

// Answers are taken from a common heap: whoever asks later may get that of who has asked before.
Result<Secret> PasswordAgent::ask(const Until& until) const {
  const auto ended = [] { return fail(Error::Code::config, "the process that runs the password command is gone"); };
  if (send(sockets_.ours.get(), "?", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN) return ended();
  for (;;) {
    const WaitEnd end = wait_for(sockets_.ours.get(), POLLIN, until);
    if (end == WaitEnd::interrupted) return fail(Error::Code::interrupted, "interrupted");
    if (end == WaitEnd::deadline) return fail(Error::Code::config, "the password command was not done in time");
    Head head{};
    ssize_t length = 0;
    int failure = 0;
    Secret text = RLOCK_TRY(Secret::written(Secret::kLongest, [&](std::span<char> out) -> Result<std::size_t> {
      Answer packet(head, out.data(), out.size());
      length = recvmsg(sockets_.ours.get(), &packet.header, MSG_DONTWAIT);
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
