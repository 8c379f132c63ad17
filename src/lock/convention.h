// SPDX-License-Identifier: MIT
// How other libraries name the locks that they take by SET NX PX, and how those who wait for one are woken: presets.
// docs/interop.md says where each row comes from.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace rlock::lock {

// The way to wake those of a library who wait for a lock, when it becomes free (lua/part/base.lua).
struct Wakeup {
  enum class Way {
    none,     // they ask again and again
    push,     // an element is pushed to the list `where`, which lasts for `lasts`
    publish,  // it is published on the channel `where`; rlock's first waiter listens there, too
  } way = Way::none;
  std::string where, what;
  milliseconds lasts{};

  bool operator==(const Wakeup&) const = default;
};

// In these texts % is the name of a lock.
struct Convention {
  std::string_view preset;  // as users call it
  std::string_view key;     // of the lock, as the library names it if nothing is configured; "": it has no such name
  std::string_view wanted;  // the form of a key that the user has to give instead, for a message
  Wakeup::Way wakes = Wakeup::Way::none;
  std::string_view where;  // @: what stands in front of ":%" in the form of the key
  std::string_view what;   // "": the key
  milliseconds lasts{};
  bool dated_values = false;  // a value tells people when it was written, and on which host, as ShedLock's does
};

std::span<const Convention> conventions();

// Null: there is none.
const Convention* find_convention(std::string_view preset);

// A key with % where the name is to stand.
class KeyForm {
 public:
  // Errors (usage): there is not one % in it.
  static Result<KeyForm> parse(std::string_view text);

  std::string of(std::string_view name) const;
  // The wake-up of the lock. Errors (usage): it needs another form.
  Result<Wakeup> wakeup(const Convention& convention, std::string_view name) const;

 private:
  explicit KeyForm(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

}  // namespace rlock::lock
