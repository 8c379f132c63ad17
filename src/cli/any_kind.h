// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "lock/mode.h"
#include "redis/server_error.h"

namespace rlock::cli {

// Asks a verb for a lock of which only the name is known: as for a plain one, as most are, and again as for what it
// turns out to be. A string that is not this owner's is no lock to it.
template <class Verb>
auto with_any_kind(const lock::LockName& name, Verb verb) {
  auto result = verb(lock::Lock{name});
  // Without scripts there is one kind.
  if (!result && redis::refuses_scripts(result.error())) return verb(lock::Lock{name, lock::Layout::string});
  const auto layout = result ? result->instead.layout() : std::nullopt;
  if (result && result->instead.is_string()) {
    auto string = verb(lock::Lock{name, lock::Layout::string});
    using Outcome = decltype(string->outcome);
    const bool ours = !string || (string->outcome != Outcome::other_owner && string->outcome != Outcome::other_kind);
    return ours ? string : result;
  }
  return layout ? verb(lock::Lock{name, *layout}) : result;
}

}  // namespace rlock::cli
