// SPDX-License-Identifier: MIT
// Messages for people, on standard error, and in syslog where that is asked for. Standard output belongs to results.
//
// Until log::start is called, everything but debug messages is written as text. Where standard error is the journal of
// systemd, "<3>" and the like stand in front of each line: its priority (sd-daemon(3)).
#pragma once

#include <string>
#include <string_view>

namespace rlock::log {

enum class Level { debug, info, warning, error };

// Makes one line out of a message; it is not given the final newline.
using Format = std::string (*)(Level, std::string_view message);

// Writes what is at `least` or above, each as one line that `format` makes and in one write(2).
// The caller must have escaped what came from outside (base/text.h).
void start(Level least, Format format);

// From now on messages go to syslog(3) as well, as text, and to standard error only errors.
void to_syslog_too();
// From now on messages go to syslog(3) alone, for a process that has no terminal.
void to_syslog();

// From now on what is less than an error is kept back while standard error is a terminal that somebody draws on, a
// full-screen program or a shell that edits a line: it is not in canonical mode (termios(3)). The next message
// that is not kept back, and say_held(), write what was. Of very much, only the end.
void hold_for_full_screen();
// Writes what was kept back, and keeps back no more.
void say_held();

void write(Level level, std::string_view message);
inline void debug(std::string_view message) { write(Level::debug, message); }
// A warning where standard error is a terminal, else a debug message: for a person, and not for the mail of cron.
void notice(std::string_view message);
inline void info(std::string_view message) { write(Level::info, message); }
inline void warning(std::string_view message) { write(Level::warning, message); }
inline void error(std::string_view message) { write(Level::error, message); }

bool enabled(Level level);

// The libraries behind it, with their versions.
std::string library();

// "rlock: message", with "warning: " where it is one.
std::string text_format(Level level, std::string_view message);
// The same with the time: "rlock: 2026-01-31T12:00:00.123Z message".
std::string timed_text_format(Level level, std::string_view message);

// Whether standard error is the stream of the journal that JOURNAL_STREAM names by device and inode (systemd.exec(5)).
bool is_journal();

}  // namespace rlock::log
