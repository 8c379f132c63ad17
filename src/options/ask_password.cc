// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <utility>

#include "base/text.h"
#include "base/unique_fd.h"
#include "base/wait.h"
#include "base/write_line.h"
#include "options/passwords.h"

namespace rlock::cli {
namespace {

std::unexpected<Error> cannot_ask(const std::string& why) { return fail(Error::Code::usage, "--ask-password: " + why); }

std::unexpected<Error> no_terminal() {
  return cannot_ask("there is no terminal; use --password-file or --password-command");
}

// Turns off the echo of a terminal, and Ctrl-Z, which would leave the shell without echo.
class Silence {
 public:
  static Result<Silence> of(int terminal) {
    Silence silence(terminal);
    if (tcgetattr(terminal, &silence.former_) != 0) return no_terminal();
    termios silent = silence.former_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHOE | ECHOK | ECHONL);
    // Another program may have left the terminal in raw mode.
    silent.c_lflag |= ICANON | ISIG;
    silent.c_iflag |= ICRNL;
    silent.c_cc[VSUSP] = _POSIX_VDISABLE;
    if (tcsetattr(terminal, TCSAFLUSH, &silent) != 0) return no_terminal();
    return silence;
  }
  Silence(Silence&& other) noexcept : terminal_(std::exchange(other.terminal_, -1)), former_(other.former_) {}
  Silence& operator=(Silence&&) = delete;
  ~Silence() {
    if (terminal_ >= 0) tcsetattr(terminal_, TCSAFLUSH, &former_);
  }

 private:
  explicit Silence(int terminal) : terminal_(terminal) {}

  int terminal_;
  termios former_{};
};

// A terminal in this mode returns whole lines.
Result<std::size_t> read_line(int terminal, std::span<char> line, int interrupt) {
  for (;;) {
    if (wait_for(terminal, POLLIN, {TimePoint::max(), interrupt}) == WaitEnd::interrupted) {
      return fail(Error::Code::interrupted, "interrupted");
    }
    const ssize_t got = read(terminal, line.data(), line.size());
    if (got >= 0) return without_newline({line.data(), static_cast<std::size_t>(got)}).size();
    if (errno != EINTR && errno != EAGAIN) return no_terminal();
  }
}

Result<Secret> ask_terminal(const std::string& server, int interrupt) {
  const UniqueFd terminal(open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!terminal) return no_terminal();
  auto line = [&]() -> Result<Secret> {
    const auto silence = RLOCK_TRY(Silence::of(terminal.get()));
    write_line(terminal.get(), "Password for " + escaped(server) + ": ");
    return Secret::written(Secret::kLongest,
                           [&](std::span<char> out) { return read_line(terminal.get(), out, interrupt); });
  }();
  write_line(terminal.get(), "\n");
  if (line && line->text().empty()) return cannot_ask("the password is empty");
  return line;
}

}  // namespace

int ending_signal(run::SignalBlock& signals) {
  int first = 0;
  while (const auto signal = signals.next()) {
    if (signals.asks_to_end(signal->number)) return signal->number;
    if (first == 0) first = signal->number;
  }
  return first != 0 ? first : SIGTERM;
}

Result<Secret> ask_password(const std::string& server, int interrupt) {
  if (interrupt >= 0) return ask_terminal(server, interrupt);
  run::SignalBlock signals = RLOCK_TRY(run::SignalBlock::begin());
  auto password = ask_terminal(server, signals.fd());
  if (!password && password.error().code == Error::Code::interrupted) run::die_of(ending_signal(signals));
  signals.restore();
  return password;
}

}  // namespace rlock::cli
