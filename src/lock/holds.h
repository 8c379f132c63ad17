// SPDX-License-Identifier: MIT
// What the replies of a server mean for a hold.
#pragma once

#include "verbs/verbs.h"

namespace rlock::lock {

// Whether `hold` lasted as long as anything ran under it, judging by the reply to its release, which came at
// `answered`. The lease could end at `ends_at` at the earliest (LeaseTiming::ends_at): if it is gone before, someone
// deleted it, or the server has lost its data. A lease that has run out later is not a loss if nobody was granted the
// lock since, as the fencing token shows, and nobody holds it. (A program without tokens that has taken and released
// the lock in between goes unnoticed.) REQUIRES: nothing ran any longer at `ends_at`.
bool lasted(const Hold& hold, const Released& released, TimePoint ends_at, TimePoint answered);

// Warns if the waiters could not be told, or the history not be written. `which`: what the warnings begin with.
void warn_of_trouble(const std::string& which, const Released& released);

struct Asked {
  std::size_t which = 0;  // the index of the hold
  std::string by;         // who asks, for people, escaped and cut
};

// Which hold a message on their control channels asks to stop. None: it is for another owner or channel.
std::optional<Asked> asked_to_stop(const redis::Message& message, std::span<const Hold> holds);

}  // namespace rlock::lock
