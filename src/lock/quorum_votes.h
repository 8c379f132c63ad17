// SPDX-License-Identifier: MIT
// The two rounds that make a grant of a quorum.
#pragma once

#include "lock/servers.h"
#include "lock/tally.h"

namespace rlock::lock {

// Asks all servers for the lock, each after it has been given back what it may hold of earlier attempts. Answers that
// come until the round has ended are all there, counted or not: what was granted has to be given back.
Answers<Vote> collect_votes(Servers& servers, const AcquireRequest& request, milliseconds limit, const Until& until);

// Notes who has granted the lock to `owner`, by requests that were sent at `sent` or later, and who lacks it. Says once
// for each server that its vote is missing: to a person at a terminal, since a minority that is down is no news for the
// mail of cron; to everybody where it refuses us, which does not mend itself.
void note_votes(Servers& servers, const AcquireRequest& request, const Answers<Vote>& votes, const OwnerId& owner,
                TimePoint sent);

// The fencing tokens of the holds are no less on a majority from now on. Errors: unavailable, interrupted.
Result<void> raise_tokens(Servers& servers, std::span<const Hold> holds, milliseconds limit, const Until& until);

}  // namespace rlock::lock
