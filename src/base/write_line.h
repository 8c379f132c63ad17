// SPDX-License-Identifier: MIT
// Lines for other processes and for files, which nobody waits long for.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>

#include "base/wait.h"

namespace rlock {

// Writes a line to a descriptor that another process reads. Gives up after `patience`, because a reader that is stuck
// (a pager, Ctrl-S on a terminal) must not hold up a process that keeps a lock. A line of up to PIPE_BUF bytes is one
// write(2), so that lines of several processes don't mix. Returns whether the whole line was written. A closed pipe
// only makes it false, if SIGPIPE is blocked.
bool write_line(int fd, std::string_view line, milliseconds patience = 100ms);

// The same, also for a file. A reader that is stuck is waited for once, not for each of many lines; a line without
// patience does not count.
//
// A write(2) to a file may take forever, because its file system is frozen or its server is gone. It cannot be told not
// to wait, and a process does not end while one of its threads is in it. So a short-lived process writes each line,
// after the one before it. This waits `patience` for that process. If that was too short, it waits for no process until
// that one has ended, and skips lines if there are kMostFileWriters already. Returns false if the line was skipped or
// could not be written. May be called by several threads. Allocates no memory.
bool write_line_anywhere(int fd, std::string_view line, milliseconds patience = 100ms);

// Waits for these processes, at most two seconds in all: when a program has ended, everyone expects its messages to be
// in their file. To be called last.
void wait_for_file_writers();

// The processes that write now or wait for their turn, for standard error and then for other files; 0: none. They are
// children that wait(2) only reports with __WALL, so a process without other children gets ECHILD. They belong to no
// command, so nobody needs to end them or to wait for their end.
inline constexpr std::size_t kMostFileWriters = 16;
using FileWriters = std::array<std::atomic<pid_t>, 2 * kMostFileWriters>;
// From now on, those of this process are noted there. REQUIRES: it stays.
void note_file_writers_in(FileWriters& writers);
bool is_file_writer(pid_t pid);

}  // namespace rlock
