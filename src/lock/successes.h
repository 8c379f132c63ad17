// SPDX-License-Identifier: MIT
// What servers remember for --once and --once-per (lua/features/08_once.lua): who succeeded, and when. Of a quorum, a
// success counts if a majority remembers it.
#pragma once

#include "lock/servers.h"

namespace rlock::lock {

// Errors: those of redis::Client; of a quorum, if no majority answers.
Result<Successes> read_successes(Servers& servers, const LockName& name, milliseconds exchange);

// The locks with successes. Looks at every key. Errors: those of names_with (lock/listing.h).
Result<std::set<LockName>> names_with_successes(Servers& servers, milliseconds exchange);

// Takes a success back, so that the next job runs again. False: there was none. Errors: as those of read_successes.
Result<bool> forget_success(Servers& servers, const LockName& name, const std::string& key, milliseconds exchange);

// The servers' clock, since 1970; of a quorum, that of the server in the middle. Asks an unreachable server again until
// `end`, but at least once. Errors: those of redis::Client; interrupted.
Result<milliseconds> time_of(Servers& servers, milliseconds exchange, const Until& end);

}  // namespace rlock::lock
