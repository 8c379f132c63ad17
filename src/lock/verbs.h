// SPDX-License-Identifier: MIT
// The verbs on a lock, each one script on one server (lua/), each with the outcomes that its script names.
//
// Every verb may be asked twice without harm, and unless told otherwise asks again itself when a reply is lost. A call
// that ends in an error with maybe_executed may have taken effect. Errors of all: those of redis::Client; protocol
// where a reply has not the shape that the script promises.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "lock/mode.h"
#include "lock/name.h"
#include "lock/script.h"
#include "redis/client.h"
#include "redis/subscriber.h"

namespace rlock::lock {

// A holder's words about itself. All of it is shown to people only.
struct Holder {
  std::string host, user, command, reason;
  long pid = 0;
  bool listens = false;  // it can be asked to stop, see ask_to_stop
  bool ended = false;    // and has left the lock to run out
};

// One hold of a lock, as long as its lease is renewed.
struct Hold {
  Lock lock;
  OwnerId owner;
  std::string id;     // of this hold, among those of one owner
  std::string token;  // fencing token, decimal
  milliseconds lease{};
  TimePoint sent;  // just before the request that succeeded was sent: what deadlines count from

  const LockName& name() const { return lock.name; }
};

// The names of their locks, for messages: "a", "a, b".
std::string display(std::span<const Hold> holds);
// Just before the oldest of the requests that succeeded was sent. REQUIRES: at least one hold.
TimePoint oldest(std::span<const Hold> holds);

// One that holds a lock, as others see it.
struct Holding {
  std::string owner;  // untrusted text
  std::string mode;   // read, write or empty
  long long holds = 0;
  std::optional<milliseconds> expires_in;  // none: never
  bool described = false;                  // what follows is known: it took the lock with rlock
  Holder who;
  std::optional<milliseconds> since;  // server's clock, since 1970
  std::optional<milliseconds> held_for;
  std::optional<milliseconds> lease;
  std::string token;
};

// How a request stands in the queue of a lock that is not free (lua/part/queue.lua).
struct Queueing {
  std::string place;        // as the last reply said it, empty for a new waiter
  int priority = 0;         // higher ones stand in front
  std::optional<int> most;  // of waiters that there may be already
  bool replace = false;     // takes the place of the last waiter that said so, and is replaced by the next one
};

struct AcquireRequest {
  LockName name;
  Mode mode;
  OwnerId owner = OwnerId::fresh();  // a waiter keeps it for as long as it waits
  std::optional<Queueing> queueing;  // none: does not wait
  std::optional<OwnerId> heir;       // of an ancestor that may hold the lock: re-entry
  std::string hold_id;               // empty: that of `owner`
  milliseconds lease{};
  Holder holder;

  std::string hold() const { return hold_id.empty() ? owner.first_hold() : hold_id; }
};

struct Acquired {
  enum class Outcome {
    granted,
    held,
    queue_full,   // more wait already than Queueing::most
    replaced,     // another waiter has taken our place
    other_kind,   // the name is in use, but not as a lock of this kind
    other_slots,  // it has another number of slots than Mode::slots
    asked,        // somebody asked for a lock that we had while we waited for another
    no_upgrade,   // the ancestor holds it as a reader: a writer would wait for it for ever
  };
  Outcome outcome = Outcome::held;
  std::optional<Hold> hold;                // granted
  std::optional<milliseconds> expires_in;  // held: until it may be available; none: nobody knows
  std::optional<long long> ahead;          // held: how many waiters stand in front of us; none: we are not in the queue
  std::string place;                       // held: see Queueing
  std::string other_channel;               // held: where it is told of its turn, too; "": nowhere
  long long holders = 0;                   // held: how many there are
  std::optional<Holding> holder;           // held: one of them
  long long number = 0;                    // queue_full: how many wait; other_slots: how many slots there are
  std::string by;                          // replaced, asked: who, for people
  OtherKind instead;                       // other_kind
};

// Takes the lock, or says why not; one that waits asks again and again, with the same owner id.
// If it is given up, and after an error with maybe_executed, release() takes it out of the queue, and gives back what
// was granted meanwhile.
Result<Acquired> acquire(redis::Client& client, const AcquireRequest& request, const Until& until);

enum class RenewOutcome { renewed, free, other_owner, other_kind, lease_unknown };

struct Renewed {
  RenewOutcome outcome = RenewOutcome::free;
  milliseconds found{};  // renewed: what was left of the lease before, by the server's clock
  OtherKind instead;     // other_kind
};

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

enum class ReleaseOutcome { released, kept, free, other_owner, other_kind };

struct Released {
  ReleaseOutcome outcome = ReleaseOutcome::free;
  long long holds_left = 0;
  std::string fault;        // why waiters were not told, "" if they were
  bool unfinished = false;  // there was more to do than one script may take
  OtherKind instead;    // other_kind
  std::string token;    // free, other_owner: the last fencing token that was granted, "" if none is known. Untrusted
};

// Gives back the hold `hold_id` of `owner`, and takes it out of the queue. `keep`: the last hold does not free the
// lock, but leaves it to run out after that time.
// Free and other_owner say that this very call has released nothing: where an earlier sending of it was executed and
// its reply was lost, the server remembers that, and the outcome is that of the first sending.
Result<Released> release(redis::Client& client, const Lock& lock, const OwnerId& owner, const std::string& hold_id,
                         const Until& until, milliseconds keep = {});
Result<Released> release(redis::Client& client, const Hold& hold, const Until& until, milliseconds keep = {});

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

// Takes the lock away from `owner`, whoever asks.
Result<Released> force_unlock(redis::Client& client, const Lock& lock, const OwnerId& owner, const Until& until);

// One that stands in the queue.
struct Waiting {
  Holder who;
  std::string mode;  // read, write or empty
  milliseconds for_so_long{};
};

struct Status {
  enum class State { free, held, other_kind };
  Lock lock;
  State state = State::free;
  OtherKind other_kind;          // what it is instead
  std::string token;             // the last one granted; may be empty
  long long slots = 0;           // of a semaphore that is in use
  long long number = 0;          // of holders
  std::vector<Holding> holders;  // the first hundred of them
  long long waiting = 0;         // how many stand in the queue
  std::vector<Waiting> queue;    // the first hundred of them, in order
  // The first hundred owner ids that stand in the queue of Redisson's RFairLock, in order. Untrusted text.
  std::vector<std::string> fair_queue;

  const LockName& name() const { return lock.name; }
  // The first of them, which is the only one where there is one at most; none if nobody holds it.
  const Holding* holder() const { return holders.empty() ? nullptr : &holders.front(); }
};

Result<Status> inspect(redis::Client& client, const LockName& name, const Until& until);

// All locks that are held and were taken with rlock, sorted by name. Looks at every key of the database (SCAN),
// for `exchange` at most at a time, and for kLongestLooks times that at most altogether: not for a hot path.
// Errors: also unavailable, protocol, where the list does not end within that time or within 32 MiB.
inline constexpr int kLongestLooks = 60;
Result<std::vector<Status>> inspect_all(redis::Client& client, milliseconds exchange);

}  // namespace rlock::lock
