// SPDX-License-Identifier: MIT
// Text that must not stay in memory: a password.
//
// All that a command of the same user could find in the memory of its guards (/proc/PID/mem, proc(5)), in a core file
// or in swap is kept to one place, which is overwritten when it is needed no more. Copies of a std::string that are
// freed are overwritten, too (base/secret.cc); so a password may pass through strings, and be kept in none.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/error.h"

namespace rlock {

// Shared: copies are handles of one memory, as with std::shared_ptr. It has pages of its own, which are in no core
// file, and not swapped where that is allowed. It is overwritten when the last handle ends, or before that for all of
// them.
class Secret {
 public:
  // No password is longer, in bytes, wherever it comes from.
  static constexpr std::size_t kLongest = 4096;

  explicit Secret(std::string_view text);

  // A text that could have been secret and is not: in ordinary memory, which spares the start five system calls.
  static Secret harmless(std::string_view text);

  // One that `write` writes into room for `most` bytes; it returns how many they are.
  static Result<Secret> written(std::size_t most, const std::function<Result<std::size_t>(std::span<char>)>& write);

  std::string_view text() const;

  // Overwrites it, for all copies: their text is empty from then on.
  void wipe();

  // Processes that are forked from now on find nothing here (MADV_WIPEONFORK, madvise(2)), unless it is harmless.
  void keep_from_children() const;

 private:
  struct Pages;
  explicit Secret(std::size_t room, bool harmless = false);

  std::shared_ptr<Pages> pages_;
};

// From now on this process, and those that it forks, cannot be traced, nor their memory be read, by others of the same
// user without CAP_SYS_PTRACE; exec(2) ends it (PR_SET_DUMPABLE, prctl(2)). Files in /proc/self belong to root then.
void keep_memory_private();

}  // namespace rlock
