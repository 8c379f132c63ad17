// SPDX-License-Identifier: MIT
// Text that must not stay in memory: a password.
//
// A command runs as the same user and can read the memory of its guards (/proc/PID/mem). So a password is kept in only
// one place, which is overwritten when it is no longer needed. Freed memory is overwritten, too (base/secret.cc), so a
// password may pass through a std::string, but must not be kept in one.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/error.h"

namespace rlock {

// Copies share the same memory, as with std::shared_ptr. It has pages of its own, which are left out of core files and,
// if permitted, not swapped. It is overwritten when the last copy is destroyed, or by wipe().
class Secret {
 public:
  // The longest password from any source, in bytes.
  static constexpr std::size_t kLongest = 4096;

  explicit Secret(std::string_view text);

  // A text that turned out not to be secret. It is in ordinary memory, which saves five system calls at the start.
  static Secret harmless(std::string_view text);

  // The text that `write` puts into a buffer of `most` bytes; it returns the number of bytes.
  static Result<Secret> written(std::size_t most, const std::function<Result<std::size_t>(std::span<char>)>& write);

  std::string_view text() const;

  // Overwrites it: the text of all copies is empty from now on.
  void wipe();

  // Hides it from processes that are forked from now on (MADV_WIPEONFORK, madvise(2)), unless it is harmless.
  void keep_from_children() const;

 private:
  struct Pages;
  explicit Secret(std::size_t room, bool harmless = false);

  std::shared_ptr<Pages> pages_;
};

// Until exec(2), prevents other processes of the same user from tracing this process and its children or reading their
// memory, unless they have CAP_SYS_PTRACE (PR_SET_DUMPABLE, prctl(2)). It also makes root the owner of /proc/self.
void keep_memory_private();

}  // namespace rlock
