// SPDX-License-Identifier: MIT
// How a lock is held, and the layout in Redis that follows from it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "lock/name.h"

namespace rlock::lock {

// How a lock is stored (lua/layout): as one of Redisson's objects, or as SET key value NX PX leaves it.
enum class Layout {
  plain,       // RLock: one owner
  read_write,  // RReadWriteLock: many readers or one writer
  semaphore,   // RPermitExpirableSemaphore: so many owners at a time
  string,      // SET NX PX: one owner, whose id is the value
};

// "plain lock", "read-write lock", "semaphore" or "string lock".
std::string_view noun(Layout layout);

// The thing at a name instead of a lock of the kind that is asked for (lua/part/kind.lua). Untrusted.
struct OtherKind {
  std::string what;                        // the noun of another kind of lock; else the type of the key, or a few words
  bool foreign = false;                    // it is no lock, and the following is known:
  std::optional<milliseconds> expires_in;  // none: never
  std::string guess;                       // as the script calls it

  std::optional<Layout> layout() const;  // of the other kind of lock; none: it is no lock
  // Any string but a semaphore: a client that takes locks by SET NX may have left it.
  bool is_string() const { return foreign && what == "string"; }
  // A guess at it: "an application's data", "a lock of another program, taken with SET NX …"; empty: nobody knows.
  std::string_view perhaps() const;
  // "a hash that never expires, perhaps an application's data"; "a semaphore". Escaped.
  std::string text() const;
};

struct Mode {
  enum class Kind { plain, read, write, slots, set } kind = Kind::plain;
  int slots = 0;        // how many there are
  bool resize = false;  // or are to be
  bool java = false;    // they are those of a semaphore that Java programs make: also where it looks like a counter

  Layout layout() const;
  std::string text() const;  // as scripts call it
};

// A name is of one kind at a time.
struct Lock {
  LockName name;
  Layout layout = Layout::plain;

  // Where Redisson publishes releases of it.
  std::string channel() const;
  // The key that describes the holder `owner`, for people. Where there is one holder at most, that is the holder key.
  std::string description_key(const std::string& owner) const;
  bool has_one_holder() const { return layout == Layout::plain || layout == Layout::string; }
};

}  // namespace rlock::lock
