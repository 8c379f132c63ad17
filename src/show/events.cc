// SPDX-License-Identifier: MIT
#include "show/events.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/write_line.h"
#include "show/output_json.h"

namespace rlock::cli {
Result<Events> Events::open(int fd) {
  Events events;
  if (fd < 0) return events;
  events.fd_.emplace(fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!*events.fd_) return std::unexpected(system_error("--status-fd"));
  // The command gets its standard streams in any case.
  if (fd > STDERR_FILENO) fcntl(fd, F_SETFD, FD_CLOEXEC);
  return events;
}

// No line is put together for nobody: it takes as long as a system call.
void Events::waiting(const lock::LockName& name, const lock::Acquired& found) const {
  if (fd_) write(waiting_event(name, found));
}
void Events::acquired(const lock::Hold& hold, milliseconds waited) const {
  if (fd_) write(acquired_event(hold, waited));
}
void Events::lock_event(const lock::LockName& name, const run::LockEvent& event) const {
  if (!fd_) return;
  write(event.kind == run::LockEvent::Kind::lost ? lost_event(name, event.why) : released_event(name, event.free_in));
}
void Events::exit(const std::vector<lock::LockName>& names, const Ending& ending) const {
  if (fd_) write(exit_event(names, ending.result, ending.status, ending.signal));
}

void Events::write(const std::string& line) const {
  if (!write_line(fd_->get(), line)) log::warning("--status-fd: a line could not be written");
}

}  // namespace rlock::cli
