// SPDX-License-Identifier: MIT
// Messages for people, on standard error and, if asked for, in syslog. Results go to standard output instead.
//
// Before log::start() is called, everything but debug messages is written, as text. If standard error is systemd's
// journal, each line starts with its priority, such as "<3>" (sd-daemon(3)).
#pragma once

#include <string>
#include <string_view>

namespace rlock::log {

enum class Level { debug, info, warning, error };

// What a message tells programs of a lock: the event, in the words of --status-fd, and the name. Empty: unknown.
struct About {
  std::string_view event, lock;
};

// Turns a message into one line, without a newline at its end.
using Format = std::string (*)(Level, std::string_view message, const About&);

// Writes messages at `least` or above, each with one write(2). REQUIRES: text from outside is escaped (base/text.h).
void start(Level least, Format format);

// From now on, writes messages as text to syslog(3), too, and only errors to standard error.
void to_syslog_too();
// From now on, writes messages only to syslog(3), for a process without a terminal.
void to_syslog();

// From now on, keeps back all messages but errors while another program draws on the terminal (a full-screen program,
// or a shell that edits a line, which both switch off canonical mode, termios(3)). The next message
// outside of that time also writes the last of those that were kept; so does say_held().
void hold_for_full_screen();
// Writes what was kept back, and keeps back nothing from now on.
void say_held();
// Whether a program draws on the terminal that is standard error.
bool somebody_draws();
// Says an error again, because that program's screen has swallowed it: only to people, on standard error.
void say_again(std::string_view error);

void write(Level level, std::string_view message, const About& about = {});
inline void debug(std::string_view message, const About& about = {}) { write(Level::debug, message, about); }
// A warning on a terminal, else a debug message: for a person who watches, but not for cron's mail.
void notice(std::string_view message);
inline void info(std::string_view message, const About& about = {}) { write(Level::info, message, about); }
inline void warning(std::string_view message) { write(Level::warning, message); }
inline void error(std::string_view message, const About& about = {}) { write(Level::error, message, about); }

// Writes the error, and ends the process with kSystem at once: for what leaves nothing to go on with.
[[noreturn]] void die(std::string_view message);
// The same after an allocation has failed, with a message that needs no memory. For std::set_new_handler.
[[noreturn]] void die_without_memory();

// The libraries that it uses, with their versions.
std::string library();

// "rlock: message" or "rlock: warning: message".
std::string text_format(Level level, std::string_view message, const About& about = {});
// With the time: "rlock: 2026-01-31T12:00:00.123Z message".
std::string timed_text_format(Level level, std::string_view message, const About& about);

// Whether standard error is the journal's stream, as JOURNAL_STREAM says (systemd.exec(5)).
bool is_journal();

}  // namespace rlock::log
