// SPDX-License-Identifier: MIT
// How this process appears to others.
#pragma once

#include <string>
#include <string_view>

#include "options/options.h"
#include "verbs/name.h"
#include "verbs/verbs.h"

namespace rlock::cli {

// With what the user says about the hold, if there are `options`.
lock::HolderInfo describe_self(std::string command, const LockingOptions& options = {});
// For a holder that is asked to stop: "alice@ci-7 (with)".
std::string asker(std::string_view with);

// The locks that this process runs under, from RLOCK_HELD.
lock::AncestorLocks held_by_ancestors();

}  // namespace rlock::cli
