// SPDX-License-Identifier: MIT
// Presets: how other libraries name the locks that they take with SET NX PX, and how they wake their waiters.
// docs/interop.md gives the source of each row.
#pragma once

#include <span>

#include "base/clock.h"
#include "base/error.h"

namespace rlock::lock {

// How a release wakes a library's waiters (lua/part/base.lua).
struct Wakeup {
  enum class Way {
    none,     // they poll
    push,     // push `what` to the list `where`, which expires after `lasts`
    publish,  // publish `what` on the channel `where`; rlock's first waiter listens there, too
  } way = Way::none;
  std::string where, what;
  milliseconds lasts{};

  bool operator==(const Wakeup&) const = default;
};

// In these texts, % is the name of a lock.
struct Convention {
  std::string_view preset;
  std::string_view key;     // the library's default key; "" if it has none
  std::string_view wanted;  // for messages: the form of the key that the user then has to give
  Wakeup::Way wakes = Wakeup::Way::none;
  std::string_view where;  // @ is the part of the key's form before ":%"
  std::string_view what;   // "": the key
  milliseconds lasts{};
  bool dated_values = false;  // the value says when and on which host it was written, as ShedLock's does
};

std::span<const Convention> conventions();

// Null: there is no such preset.
const Convention* find_convention(std::string_view preset);

// The key of the lock `name`, if `form` is the key with % in place of the name. Errors (usage): the form does not
// contain exactly one %.
Result<std::string> key_of(std::string_view form, std::string_view name);

// The wake-up of that lock. Errors (usage): also if the convention needs another form.
Result<Wakeup> wakeup_of(const Convention& convention, std::string_view form, std::string_view name);

}  // namespace rlock::lock
