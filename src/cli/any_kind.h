// SPDX-License-Identifier: MIT
#pragma once

#include <optional>

#include "lock/mode.h"

namespace rlock::cli {

// Asks a verb for a lock of which only the name is known: as for a plain one, as most are, and again as for what it
// turns out to be.
template <class Verb>
auto with_any_kind(const lock::LockName& name, Verb verb) {
  auto result = verb(lock::Lock{name});
  const auto layout = result ? result->instead.layout() : std::nullopt;
  return layout ? verb(lock::Lock{name, *layout}) : result;
}

}  // namespace rlock::cli
