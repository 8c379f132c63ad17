// SPDX-License-Identifier: MIT
// This process as others see it.
#pragma once

#include <string>
#include <string_view>

#include "lock/name.h"
#include "lock/verbs.h"

namespace rlock::cli {

// `command` is what it runs.
lock::HolderInfo describe_self(std::string command, std::string reason);
// The same for a holder that it asks to stop: "alice@ci-7 (with)".
std::string asker(std::string_view with);

// The locks that it runs under: RLOCK_HELD.
lock::AncestorLocks held_by_ancestors();

}  // namespace rlock::cli
