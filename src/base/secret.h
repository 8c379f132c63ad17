// SPDX-License-Identifier: MIT
// What nobody may guess, and text that must not stay in memory: a password.
//
// A command runs as the same user and can read the memory of its guards (/proc/PID/mem). So a password is kept in only
// one place, which is overwritten when it is no longer needed. Freed memory is overwritten, too (base/secret.cc), so a
// password may pass through a std::string, but must not be kept in one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/error.h"

namespace rlock {

// Copies share the same memory, as with std::shared_ptr. It has pages of its own, which are left out of core files and,
// if permitted, not swapped. It is overwritten when the last copy is destroyed, or by wipe().
class Secret {
 public:
  // The longest password from any source, in bytes.
  static constexpr std::size_t kLongest = 4096;

  Secret() = default;  // empty, and without pages
  explicit Secret(std::string_view text);

  // The text that `write` puts into a buffer of `most` bytes; it returns the number of bytes.
  static Result<Secret> written(std::size_t most, const std::function<Result<std::size_t>(std::span<char>)>& write);

  std::string_view text() const;

  // Overwrites it: the text of all copies is empty from now on.
  void wipe();

  // Hides it from processes that are forked from now on (MADV_WIPEONFORK, madvise(2)).
  void keep_from_children() const;

 private:
  struct Pages;
  explicit Secret(std::size_t room);

  std::shared_ptr<Pages> pages_;
};

// Sets memory to zero, even if nobody reads it afterwards, as explicit_bzero(3) does: byte by byte in some libraries.
void overwrite(void* memory, std::size_t size);

// Until exec(2), prevents other processes of the same user from tracing this process and its children or reading their
// memory, unless they have CAP_SYS_PTRACE (PR_SET_DUMPABLE, prctl(2)). It also makes root the owner of /proc/self.
void keep_memory_private();

// A random UUID, version 4 (RFC 9562 §5.4), from getrandom(2). If a filter refuses that system call, the process ends:
// without random owner ids no promise of rlock holds.
std::string random_uuid();

// A random number from 0 to `limit` - 1. REQUIRES: limit > 0.
std::uint64_t random_below(std::uint64_t limit);

}  // namespace rlock
