// SPDX-License-Identifier: MIT
// The verbs on locks: one interface, and three ways to keep a lock, each in files of its own: one server by scripts
// (lock/by_scripts.h), one server without scripts (lock/without_scripts.h), and a quorum of servers (lock/quorum.h).
// Servers (lock/servers.h) chooses by the addresses.
//
// What holds for all three stands here:
// - A hold counts from *s*, just before the first request that may have granted or renewed it was sent, however often
//   it was sent, and to whichever server (docs/architecture.md, section 2). Of several holds the oldest *s* counts.
// - Every verb may be asked twice without harm, and asks again itself when a reply is lost, but for the renewal of
//   holds. An error with maybe_executed may have taken effect.
// - Errors: those of redis::Client; protocol with maybe_executed, where a reply has not the shape that is promised.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/wait.h"
#include "lock/answers.h"
#include "redis/subscriber.h"

namespace rlock::lock {

// The names of their locks, for messages: "a", "a, b".
std::string display(std::span<const Hold> holds);
// Just before the oldest of the requests that succeeded was sent. REQUIRES: at least one hold.
TimePoint oldest(std::span<const Hold> holds);

// The renewal of several holds: the result is that of the first one that was not renewed, whose index is `at`; if all
// were, `found` is the shortest.
struct AllRenewed : Renewed {
  std::size_t at = 0;
  TimePoint sent{};  // just before the first request: what deadlines count from
};

// How to look at a lock.
struct Look {
  bool as_string = false;  // a string at the name is a lock, whatever its time: somebody knows that
  bool majority = false;   // of a quorum, no more than that is waited for
};

class Verbs {
 public:
  virtual ~Verbs() = default;

  // Takes the lock, or says why not; one that waits asks again and again, with the same owner id. If it is given up,
  // and after an error with maybe_executed, release() takes it out of the queue, and gives back what was granted
  // meanwhile. Errors: also config, see Servers::refuse_eviction.
  Result<Acquired> acquire(const AcquireRequest& request, const Until& until) {
    return acquire(request, BootClock::now(), until);
  }
  // The same for one who has asked before, at `sent` for the first time.
  virtual Result<Acquired> acquire(const AcquireRequest& request, TimePoint sent, const Until& until) = 0;

  // Lets the leases start anew, all in one exchange, without a second attempt. With a quorum also puts a hold that a
  // server has lost, or never had, there, while a majority keeps it. This part is not ended by until.interrupt, and
  // takes half a second at most. REQUIRES: no release of one of these holds has begun.
  Result<AllRenewed> renew(std::span<const Hold> holds, milliseconds lease, const Until& until);
  // The same for an owner of which no more is known. `lease` 0: as long as it was granted.
  virtual Result<Renewed> renew(const Lock& lock, const OwnerId& owner, milliseconds lease, const Until& until) = 0;

  // Gives back one hold, and takes its owner out of the queue. A note on an owner that never held the lock is counted
  // alone. Free and other_owner say that this very call has released nothing: where an earlier sending of it was
  // executed and its reply was lost, the server remembers that, and the outcome is that of the first sending.
  virtual Result<Released> release(const ReleaseRequest& request, const Until& until) = 0;
  Result<Released> release(const Hold& hold, const Until& until, milliseconds keep = {},
                           const HistoryNote* note = nullptr) {
    return release({hold.lock, hold.owner, hold.id, keep, note, hold.lease}, until);
  }

  // Takes the lock away from `owner`, whoever asks. `note`: null, or what the history is to say of it.
  virtual Result<Released> force_unlock(const Lock& lock, const OwnerId& owner, const Until& until,
                                        const HistoryNote* note) = 0;

  // Asks the processes that keep the lock for `owner` to stop and to release it. `by`: who asks, for people.
  // Returns how many have heard it: none where nobody listens, because the owner lives in another program or is dead.
  virtual Result<long long> ask_to_stop(const LockName& name, const OwnerId& owner, const std::string& by,
                                        const Until& until) = 0;

  // A string with a TTL counts as held: another program may have taken it by SET NX. `other_kind` says what else it may
  // be. Of a quorum also what each server says.
  virtual Result<Status> inspect(const LockName& name, const Until& until, Look look = {}) = 0;

 private:
  // As renew; `sent` is now.
  virtual Result<AllRenewed> renew_all(std::span<const Hold> holds, milliseconds lease, TimePoint sent,
                                       const Until& until) = 0;
};

// The renewals of several holds as one. Errors: the first, where none is lost: that counts, whatever another server of
// a cluster has to say, or does not say.
Result<AllRenewed> all_of(std::span<const Result<Renewed>> each);

// Whether `hold` lasted for as long as something ran under it, by the answer to its release, which came at `answered`.
// The lease could end at `ends_at` at the earliest (LeaseTiming::ends_at). One that is gone before was deleted, or the
// server has lost its data. Later, a lease that has just run out is no loss: nobody was granted the lock since, as the
// fencing token shows, and nobody holds it. A program that uses no tokens and has released the lock again is not seen.
// REQUIRES: nothing ran any more at `ends_at`.
bool lasted(const Hold& hold, const Released& released, TimePoint ends_at, TimePoint answered);

struct Asked {
  std::size_t which = 0;  // the index of the hold
  std::string by;         // who asks, for people, escaped and cut
};

// For which of the holds a message on one of their control channels asks to stop. None: it is meant for another owner,
// or was said on another channel.
std::optional<Asked> asked_to_stop(const redis::Message& message, std::span<const Hold> holds);

}  // namespace rlock::lock
