// SPDX-License-Identifier: MIT
#include "base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <termios.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <memory>
#include <mutex>

#include "base/text.h"
#include "base/write_line.h"

namespace rlock::log {
namespace {

// spdlog has one more level below ours.
static_assert(spdlog::level::debug == 1 && spdlog::level::info == 2 && spdlog::level::warn == 3 &&
              spdlog::level::err == 4);
spdlog::level::level_enum to_spdlog(Level level) {
  return static_cast<spdlog::level::level_enum>(static_cast<int>(level) + 1);
}

std::atomic<bool> holding = false;
thread_local About current;  // of the message that is being written
constexpr std::size_t kMostHeld = 100;

// Those of the terminal; otherwise as if it had its usual ones.
termios modes_of_stderr() {
  termios modes{.c_oflag = OPOST, .c_lflag = ICANON};
  tcgetattr(STDERR_FILENO, &modes);
  return modes;
}

int priority(Level level) {
  return std::array{LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERR}[static_cast<std::size_t>(level)];
}

// syslog(3) waits for a log daemon that hangs, without limit. Like that, connects to a socket for packets, or, with
// some daemons, to a stream of texts that end with a zero byte. Allocates no memory.
bool send_to_syslog(int priority, std::string_view message, milliseconds patience) {
  const std::time_t now = std::time(nullptr);
  tm local{};
  char date[32] = "", line[PIPE_BUF];
  if (localtime_r(&now, &local)) std::strftime(date, sizeof date, "%b %e %T", &local);
  const int length = std::snprintf(line, sizeof line, "<%d>%s rlock[%d]: %.*s", LOG_USER | priority, date, getpid(),
                                   static_cast<int>(std::min<std::size_t>(message.size(), PIPE_BUF)), message.data());
  const std::size_t size = std::min(static_cast<std::size_t>(length), sizeof line - 1);
  const sockaddr_un daemon{AF_UNIX, "/dev/log"};
  for (const int type : {SOCK_DGRAM, SOCK_STREAM}) {
    const UniqueFd to(socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!to) return false;
    if (connect(to.get(), reinterpret_cast<const sockaddr*>(&daemon), sizeof daemon) == 0) {
      return write_line(to.get(), {line, type == SOCK_STREAM ? size + 1 : size}, patience);
    }
    if (errno != EPROTOTYPE) return false;
  }
  return false;
}

// A message that cannot be written must neither end a healthy job nor hold up the end of another. So nobody waits long
// for a reader that is stuck, nor twice, and what was not written is counted and said later.
class Sink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // For standard error; without a format, for syslog.
  explicit Sink(Format format) : format_(format) {}

  void say_again(std::string_view error) {
    const std::scoped_lock lock(mutex_);
    if (for_people()) say(Level::error, finished(Level::error, error));
  }

 private:
  // Programs that read JSON want each line only once.
  bool for_people() const { return format_ == text_format || format_ == timed_text_format; }

  std::string finished(Level level, std::string_view message) const {
    if (!format_) return std::string(message);
    std::string line = inert(format_(level, message, current));
    // As the journal reads it.
    if (journal_) line.insert(0, "<" + std::to_string(priority(level)) + ">");
    return line;
  }

  void sink_it_(const spdlog::details::log_msg& message) override {
    const auto level = static_cast<Level>(message.level - 1);
    std::string line = finished(level, {message.payload.data(), message.payload.size()});
    if (format_ && holding && somebody_draws()) {
      // An error is said now, and again when the program has gone and has cleared the screen.
      if (level == Level::error) say(level, line);
      held_.push_back({std::move(line), level});
      if (held_.size() > kMostHeld) held_.pop_front();
      return;
    }
    flush_();
    say(level, line);
  }

  void flush_() override {
    // A shell's prompt has cleared nothing.
    const bool again = for_people() && !somebody_draws();
    for (const Held& held : std::exchange(held_, {})) {
      if (again || held.level != Level::error) say(held.level, held.line);
    }
  }

  void say(Level level, const std::string& line) {
    const milliseconds patience = unwritten_ == 0 ? 100ms : 0ms;
    if (unwritten_ > 0) {
      const std::string lost = std::to_string(unwritten_) + (unwritten_ == 1 ? " message" : " messages");
      const std::string gap = finished(Level::warning, lost + " could not be written here");
      if (!put(Level::warning, gap, patience)) {
        ++unwritten_;
        return;
      }
    }
    unwritten_ = put(level, line, patience) ? 0 : 1;
  }

  bool put(Level level, const std::string& line, milliseconds patience) const {
    if (!format_) return send_to_syslog(priority(level), line, patience);
    const bool returns_line = modes_of_stderr().c_oflag & OPOST;
    return write_line_anywhere(STDERR_FILENO, line + (returns_line ? "\n" : "\r\n"), patience);
  }

  struct Held {
    std::string line;
    Level level;  // an error was already said
  };

  const Format format_;
  const bool journal_ = is_journal();
  std::deque<Held> held_;
  unsigned unwritten_ = 0;  // since the last one that was
};

std::unique_ptr<spdlog::logger> make_logger(Level least, Format format) {
  auto logger = std::make_unique<spdlog::logger>("rlock", std::make_shared<Sink>(format));
  logger->set_level(to_spdlog(least));
  return logger;
}

std::unique_ptr<spdlog::logger>& logger() {
  static std::unique_ptr<spdlog::logger> instance = make_logger(Level::info, text_format);
  return instance;
}

std::atomic<bool> only_syslog = false;

}  // namespace

void start(Level least, Format format) { logger() = make_logger(least, format); }

void hold_for_full_screen() { holding = true; }

void say_held() {
  holding = false;
  logger()->flush();
}

bool somebody_draws() { return !(modes_of_stderr().c_lflag & ICANON); }

void say_again(std::string_view error) { static_cast<Sink&>(*logger()->sinks().front()).say_again(error); }

void to_syslog_too() {
  for (const auto& sink : logger()->sinks()) sink->set_level(spdlog::level::err);
  logger()->sinks().push_back(std::make_shared<Sink>(nullptr));
}

void to_syslog() {
  only_syslog = true;
  logger()->sinks() = {std::make_shared<Sink>(nullptr)};
}

void write(Level level, std::string_view message, const About& about) {
  current = about;
  // As a value, not as a format, because the text may contain braces.
  logger()->log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
  current = {};
}

void notice(std::string_view message) { write(isatty(STDERR_FILENO) ? Level::warning : Level::debug, message); }

void die(std::string_view message) {
  error(message);
  wait_for_file_writers();
  _exit(kSystem);
}

void die_without_memory() {
  // The logger allocates, and this thread may be in the middle of writing a message.
  static std::atomic_flag again;
  if (again.test_and_set()) _exit(kSystem);
  if (only_syslog) {
    send_to_syslog(LOG_ERR, "out of memory", 100ms);
  } else {
    write_line_anywhere(STDERR_FILENO, "rlock: out of memory\n");
  }
  wait_for_file_writers();
  _exit(kSystem);
}

std::string library() {
  return "spdlog " + std::to_string(SPDLOG_VER_MAJOR) + "." + std::to_string(SPDLOG_VER_MINOR) + "." +
         std::to_string(SPDLOG_VER_PATCH) + ", fmt " + std::to_string(FMT_VERSION / 10000) + "." +
         std::to_string(FMT_VERSION / 100 % 100) + "." + std::to_string(FMT_VERSION % 100);
}

std::string text_format(Level level, std::string_view message, const About&) {
  return std::string(level == Level::warning ? "rlock: warning: " : "rlock: ") + std::string(message);
}

std::string timed_text_format(Level level, std::string_view message, const About&) {
  return "rlock: " + precise_date_text(since_1970()) + text_format(level, message).substr(sizeof "rlock:" - 1);
}

bool is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat file{};
  if (!stream || fstat(STDERR_FILENO, &file) != 0) return false;
  return stream == std::to_string(file.st_dev) + ":" + std::to_string(file.st_ino);
}

}  // namespace rlock::log
