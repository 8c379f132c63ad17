// SPDX-License-Identifier: MIT
// Names that somebody has used, as against those that were mistyped.
#pragma once

#include <set>

#include "base/error.h"
#include "lock/servers.h"

namespace rlock::lock {

// False: the lock of that status is free, and there is no fencing token, queue, history or other key of that name, nor
// anybody who waits for it. Costs nothing where the status shows one of these, else one exchange. True where the server
// does not say.
bool is_known(Servers& servers, const Status& status, const Until& until);

// The names that have keys of rlock, or a fencing token, on the server; of a quorum on the first one. Looks at every key.
// Errors: those of names_with (lock/listing.h).
Result<std::set<LockName>> known_names(Servers& servers, milliseconds exchange, const Until& end);

}  // namespace rlock::lock
