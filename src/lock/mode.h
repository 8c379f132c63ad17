// SPDX-License-Identifier: MIT
// How a lock is held, and the layout in Redis that follows from it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lock/name.h"

namespace rlock::lock {

// How a lock is stored (lua/lock.lua): each is that of one of Redisson's objects.
enum class Layout {
  plain,   // RLock: one owner
  shared,  // RReadWriteLock: many readers or one writer
  slots,   // RPermitExpirableSemaphore: so many owners at a time
};

// "plain lock", "read-write lock" or "semaphore"; and back, as scripts call what stands at a name instead.
std::string_view noun(Layout layout);
std::optional<Layout> layout_called(std::string_view noun);

struct Mode {
  enum class Kind { plain, read, write, slots } kind = Kind::plain;
  int slots = 0;        // how many there are
  bool resize = false;  // or are to be

  Layout layout() const;
  std::string text() const;  // as scripts call it
};

// A name is of one kind at a time.
struct Lock {
  LockName name;
  Layout layout = Layout::plain;

  // Where Redisson publishes releases of it.
  std::string channel() const;
};

}  // namespace rlock::lock
