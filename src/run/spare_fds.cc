// SPDX-License-Identifier: MIT
#include "run/spare_fds.h"

#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "base/unique_fd.h"

namespace rlock::run {
namespace {

// Most at a time, in a monitor: pidfd, timer, the gate and six events of its own; two to an agent; two connections,
// each with a timer, or with five for a lookup; three for a hook; three for a look at a tree. Rounded up.
constexpr std::size_t kMost = 32;

}  // namespace

Result<void> need_spare_fds() {
  std::array<UniqueFd, kMost> spare;
  for (UniqueFd& fd : spare) {
    fd = UniqueFd(eventfd(0, EFD_CLOEXEC));
    if (fd) continue;
    const bool limited = errno == EMFILE;
    Error error = system_error("cannot open " + std::to_string(kMost) + " file descriptors");
    if (limited) error.message += "; raise the limit, ulimit -n";
    return std::unexpected(std::move(error));
  }
  return {};
}

}  // namespace rlock::run
