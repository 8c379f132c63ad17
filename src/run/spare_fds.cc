// SPDX-License-Identifier: MIT
#include "run/spare_fds.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "run/system_calls.h"

namespace rlock::run {
namespace {

// Most at a time, in a monitor: pidfd, timer, the gate and six events of its own; two to an agent; two connections,
// each with a timer, or with five for a lookup; three for a hook; three for a look at a tree. Rounded up.
constexpr std::size_t kMost = 32;

}  // namespace

Result<void> need_spare_fds() {
  std::array<UniqueFd, kMost> spare;
  // A duplicate takes a place as any other does, and a tenth of the time of something new.
  spare.front() = UniqueFd(open_process(getpid()));
  if (!spare.front() && errno != EMFILE && errno != ENFILE) {
    Error error = system_error("pidfd_open");
    error.message += "; rlock needs Linux 5.4 or later, and a container or sandbox that lets it make this call";
    return std::unexpected(std::move(error));
  }
  for (UniqueFd& fd : spare) {
    if (!fd && spare.front()) fd = UniqueFd(fcntl(spare.front().get(), F_DUPFD_CLOEXEC, 0));
    if (fd) continue;
    const bool limited = errno == EMFILE;
    Error error = system_error("cannot open " + std::to_string(kMost) + " file descriptors");
    if (limited) error.message += "; raise the limit, ulimit -n";
    return std::unexpected(std::move(error));
  }
  return {};
}

}  // namespace rlock::run
