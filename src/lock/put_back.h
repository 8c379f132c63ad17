// SPDX-License-Identifier: MIT
// Holds that a server of a quorum has lost, as after a restart, and a majority keeps. The server gets them again as
// soon as it may vote: else the restarts of one server after the other would add up.
#pragma once

#include "lock/servers.h"
#include "lock/tally.h"

namespace rlock::lock {

// The answer to a renewal of what was granted to `request` says that the server does not have it.
bool is_missing(const AcquireRequest& request, RenewOutcome found);

// The member gets `hold`, which was granted to `request`, again, under the same owner id and with its token. REQUIRES:
// a majority keeps it; the member may vote. In that member's thread. False: it does not have it, as far as is known.
bool put_back(Member& member, const AcquireRequest& request, const Hold& hold, const Until& until);

// The answer may come from a server that does not have the hold.
bool may_lack(const Result<Renewed>& answer);

// For one who knows no more of a hold than its owner id. `answers`: of all servers to its renewal, which a majority
// has confirmed; `status`: what a majority says of the lock, for the rest. `lease` 0: that of the holder. A release
// that another process sends meanwhile may leave the hold on the servers that have lost it, which are fewer than a
// majority, until its lease has run out. Nothing is put back of an owner that has several holds: only their own
// processes know them.
void put_back_where_lost(Servers& servers, const Status& status, const OwnerId& owner, milliseconds lease,
                         const Answers<Renewed>& answers, const Until& until);

}  // namespace rlock::lock
