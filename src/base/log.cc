// SPDX-License-Identifier: MIT
#include "base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/syslog_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <syslog.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "base/date.h"
#include "base/exit_status.h"
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
constexpr std::size_t kMostHeld = 100;

struct TerminalModes {
  bool in_lines = true;      // false: a program draws on it
  bool returns_line = true;  // a newline also moves to the start of the line
};

TerminalModes modes_of_stderr() {
  termios modes;
  if (tcgetattr(STDERR_FILENO, &modes) != 0) return {};
  return {(modes.c_lflag & ICANON) != 0, (modes.c_oflag & OPOST) != 0};
}

// The priority in syslog(3), as the journal reads it at the start of a line.
const char* priority(Level level) { return std::array{"<7>", "<6>", "<4>", "<3>"}[static_cast<std::size_t>(level)]; }

// A closed standard error is no error, and a stuck reader is not waited for: a message that cannot be shown must
// neither end a healthy job nor hold up the end of another.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit StderrSink(Format format) : format_(format) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const Level level = static_cast<Level>(message.level - 1);
    std::string line = format_(level, {message.payload.data(), message.payload.size()});
    if (journal_) line.insert(0, priority(level));
    if (holding && !modes_of_stderr().in_lines) {
      // An error is said now, and again when the program has gone and has cleared the screen.
      const bool urgent = level == Level::error;
      if (urgent) say(line);
      held_.push_back({std::move(line), urgent});
      if (held_.size() > kMostHeld) held_.pop_front();
      return;
    }
    flush_();
    say(line);
  }

  void flush_() override {
    // Programs that read JSON want each line only once, and a shell's prompt has cleared nothing.
    const bool for_people = format_ == text_format || format_ == timed_text_format;
    const bool again = for_people && modes_of_stderr().in_lines;
    for (const Held& held : std::exchange(held_, {})) {
      if (again || !held.said) say(held.line);
    }
  }

  static void say(const std::string& line) {
    write_line(STDERR_FILENO, line + (modes_of_stderr().returns_line ? "\n" : "\r\n"));
  }

  struct Held {
    std::string line;
    bool said;
  };

  const Format format_;
  const bool journal_ = is_journal();
  std::deque<Held> held_;
};

std::unique_ptr<spdlog::logger> make_logger(Level least, Format format) {
  auto logger = std::make_unique<spdlog::logger>("rlock", std::make_shared<StderrSink>(format));
  logger->set_level(to_spdlog(least));
  return logger;
}

std::unique_ptr<spdlog::logger>& logger() {
  static std::unique_ptr<spdlog::logger> instance = make_logger(Level::info, text_format);
  return instance;
}

std::shared_ptr<spdlog::sinks::sink> syslog_sink() {
  return std::make_shared<spdlog::sinks::syslog_sink_mt>("rlock", LOG_PID, LOG_USER, false);
}

std::atomic<bool> only_syslog = false;

}  // namespace

void start(Level least, Format format) { logger() = make_logger(least, format); }

void hold_for_full_screen() { holding = true; }

void say_held() {
  holding = false;
  logger()->flush();
}

void to_syslog_too() {
  for (const auto& sink : logger()->sinks()) sink->set_level(spdlog::level::err);
  logger()->sinks().push_back(syslog_sink());
}

void to_syslog() {
  only_syslog = true;
  const auto level = logger()->level();
  logger() = std::make_unique<spdlog::logger>("rlock", syslog_sink());
  logger()->set_level(level);
}

void write(Level level, std::string_view message) {
  // As a value, not as a format, because the text may contain braces.
  logger()->log(to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

void notice(std::string_view message) { write(isatty(STDERR_FILENO) ? Level::warning : Level::debug, message); }

void die(std::string_view message) {
  error(message);
  _exit(kSystem);
}

void die_without_memory() {
  // The logger allocates, and this thread may be in the middle of writing a message.
  static std::atomic_flag again;
  if (again.test_and_set()) _exit(kSystem);
  if (only_syslog) {
    syslog(LOG_ERR, "out of memory");
  } else {
    write_line(STDERR_FILENO, "rlock: out of memory\n");
  }
  _exit(kSystem);
}

std::string library() {
  return "spdlog " + std::to_string(SPDLOG_VER_MAJOR) + "." + std::to_string(SPDLOG_VER_MINOR) + "." +
         std::to_string(SPDLOG_VER_PATCH) + ", fmt " + std::to_string(FMT_VERSION / 10000) + "." +
         std::to_string(FMT_VERSION / 100 % 100) + "." + std::to_string(FMT_VERSION % 100);
}

std::string text_format(Level level, std::string_view message) {
  return std::string(level == Level::warning ? "rlock: warning: " : "rlock: ") + std::string(message);
}

std::string timed_text_format(Level level, std::string_view message) {
  return "rlock: " + precise_date_text(since_1970()) + text_format(level, message).substr(sizeof "rlock:" - 1);
}

bool is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat file{};
  if (!stream || fstat(STDERR_FILENO, &file) != 0) return false;
  return stream == std::to_string(file.st_dev) + ":" + std::to_string(file.st_ino);
}

}  // namespace rlock::log
