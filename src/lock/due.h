// SPDX-License-Identifier: MIT
// Holds whose jobs want an entry in the history, and that have none yet (lua/part/due.lua).
#pragma once

#include <set>
#include <vector>

#include "base/error.h"
#include "base/wait.h"
#include "lock/history.h"
#include "redis/client.h"

namespace rlock::lock {

// Those of these locks whose lease has run out, as the next grant will write them down: up to a hundred of each lock,
// the newest first. A lock that cannot be read is passed over. Errors: those of redis::Client and of within_list_limits;
// unavailable where it takes too long.
Result<std::vector<PastHold>> read_due(redis::Client& client, const std::set<LockName>& names, milliseconds exchange,
                                       const Until& end);

}  // namespace rlock::lock
