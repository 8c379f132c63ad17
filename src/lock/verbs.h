// SPDX-License-Identifier: MIT
// The verbs on a lock, each one script on one server (lua/), each with the outcomes that its script names.
//
// Every verb may be asked twice without harm, and unless told otherwise asks again itself when a reply is lost. A call
// that ends in an error with maybe_executed may have taken effect. Errors of all: those of redis::Client; protocol
// where a reply has not the shape that the script promises.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "lock/answers.h"
#include "lock/script.h"
#include "redis/client.h"
#include "redis/subscriber.h"

namespace rlock::lock {

// The names of their locks, for messages: "a", "a, b".
std::string display(std::span<const Hold> holds);
// Just before the oldest of the requests that succeeded was sent. REQUIRES: at least one hold.
TimePoint oldest(std::span<const Hold> holds);

// Has acquire() refuse a server that may drop locks when its memory is full. REQUIRES: it is not connected yet.
void refuse_eviction(redis::Client& client);
// The refusal, by what the server has said along with its last answer. Errors: config, with maybe_executed.
Result<void> expect_no_eviction(const redis::Client& client);

// Takes the lock, or says why not; one that waits asks again and again, with the same owner id.
// If it is given up, and after an error with maybe_executed, release() takes it out of the queue, and gives back what
// was granted meanwhile. Errors: also config, see refuse_eviction.
Result<Acquired> acquire(redis::Client& client, const AcquireRequest& request, const Until& until);

// Lets the lease start anew. `lease` 0: as long as it was granted.
Result<Renewed> renew(redis::Client& client, const Lock& lock, const OwnerId& owner, milliseconds lease,
                      Attempts attempts, const Until& until);

// The same for all of them in one exchange, without a second attempt. The result is that of the first one that was not
// renewed, whose index is `at`; if all were, `found` is the shortest.
struct AllRenewed : Renewed {
  std::size_t at = 0;
};
Result<AllRenewed> renew_all(redis::Client& client, std::span<const Hold> holds, milliseconds lease,
                             const Until& until);

// Gives back the hold `hold_id` of `owner`, and takes it out of the queue. `keep`: the last hold does not free the
// lock, but leaves it to run out after that time. `note`: null, or what the history is to say of it, also where the hold
// is not there any more; what it is for an owner that never held the lock is counted alone.
// Free and other_owner say that this very call has released nothing: where an earlier sending of it was executed and
// its reply was lost, the server remembers that, and the outcome is that of the first sending.
Result<Released> release(redis::Client& client, const Lock& lock, const OwnerId& owner, const std::string& hold_id,
                         const Until& until, milliseconds keep = {}, const HistoryNote* note = nullptr);
Result<Released> release(redis::Client& client, const Hold& hold, const Until& until, milliseconds keep = {},
                         const HistoryNote* note = nullptr);

// Whether `hold` lasted for as long as something ran under it, by the answer to its release, which came at `answered`.
// The lease could end at `ends_at` at the earliest (LeaseTiming::ends_at). One that is gone before was deleted, or the
// server has lost its data. Later, a lease that has just run out is no loss: nobody was granted the lock since, as the
// fencing token shows, and nobody holds it. A program that uses no tokens and has released the lock again is not seen.
// REQUIRES: nothing ran any more at `ends_at`.
bool lasted(const Hold& hold, const Released& released, TimePoint ends_at, TimePoint answered);

// Asks the processes that keep the lock for `owner` to stop and to release it. `by`: who asks, for people.
// Returns how many have heard it: none where nobody listens, because the owner lives in another program or is dead.
Result<long long> ask_to_stop(redis::Client& client, const LockName& name, const OwnerId& owner, const std::string& by,
                              const Until& until);

struct Asked {
  std::size_t which = 0;  // the index of the hold
  std::string by;         // who asks, for people, escaped and cut
};

// For which of the holds a message on one of their control channels asks to stop. None: it is meant for another owner,
// or was said on another channel.
std::optional<Asked> asked_to_stop(const redis::Message& message, std::span<const Hold> holds);

// Takes the lock away from `owner`, whoever asks. `note`: null, or what the history is to say of it.
Result<Released> force_unlock(redis::Client& client, const Lock& lock, const OwnerId& owner, const Until& until,
                              const HistoryNote* note = nullptr);

// A string with a TTL counts as held: another program may have taken it by SET NX. `other_kind` says what else it may be.
Result<Status> inspect(redis::Client& client, const LockName& name, const Until& until);
// The same for one who knows that a string at the name is a lock, whatever its time.
Result<Status> inspect_string(redis::Client& client, const LockName& name, const Until& until);

// All locks that are held, and were taken with rlock or have a queue; and those of `also`, whatever their state, unless
// the user has no right to them. Sorted by name. Looks at every key of the database (SCAN),
// for `exchange` at most at a time, and for kLongestLooks times that at most altogether: not for a hot path.
// Errors: also unavailable, protocol, where the list does not end within that time or within 32 MiB.
inline constexpr int kLongestLooks = 60;
Result<std::vector<Status>> inspect_all(redis::Client& client, milliseconds exchange, const Until& until = {},
                                        const std::set<LockName>& also = {});

}  // namespace rlock::lock
