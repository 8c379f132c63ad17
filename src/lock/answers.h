// SPDX-License-Identifier: MIT
// The questions to the verbs on a lock (lock/verbs.h), and their answers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "lock/mode.h"
#include "lock/name.h"

namespace rlock::lock {

// A holder's words about itself. All of it is shown to people only.
struct HolderInfo {
  std::string host, user, command, reason;
  long pid = 0;
  bool listens = false;     // it can be asked to stop, see ask_to_stop
  bool in_history = false;  // it writes its hold down when that is over
  bool ended = false;       // and has left the lock to run out
  // Each third of this time the holder lets the lease start anew, for so long; 0: it does not, or nobody knows.
  milliseconds renewal{};
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

// One that holds a lock, as others see it.
struct HolderView {
  std::string owner;  // untrusted text; of a long string its beginning
  std::string mode;   // read, write or empty
  long long holds = 0;
  std::optional<milliseconds> expires_in;  // none: never
  bool by_set = false;                     // another program has put a string there, by SET NX
  bool described = false;                  // what follows is known: it took the lock with rlock
  HolderInfo who;
  std::optional<milliseconds> since;  // server's clock, since 1970
  std::optional<milliseconds> held_for;
  std::optional<milliseconds> lease;
  std::optional<milliseconds> renewed_ago;  // none: it is not renewed, or nobody knows
  milliseconds overdue{};  // for so long the next renewal has been missing; see overdue_for in lock/lease.h
  std::string token;
};

// How a request stands in the queue of a lock that is not free (lua/part/queue.lua).
struct QueueRequest {
  std::string place;        // as the last reply said it, empty for a new waiter
  int priority = 0;         // higher ones stand in front
  std::optional<int> most;  // of waiters that there may be already
  bool replace = false;     // takes the place of the last waiter that said so, and is replaced by the next one
};

struct AcquireRequest {
  LockName name;
  Mode mode;
  OwnerId owner = OwnerId::fresh();      // a waiter keeps it for as long as it waits
  std::optional<QueueRequest> queueing;  // none: does not wait
  std::optional<OwnerId> heir;           // of an ancestor that may hold the lock: re-entry
  std::string hold_id;                   // empty: that of `owner`
  milliseconds lease{};
  HolderInfo holder;

  std::string hold() const { return hold_id.empty() ? owner.first_hold() : hold_id; }
};

struct Acquired {
  enum class Outcome {
    granted,
    held,
    queue_full,   // more wait already than QueueRequest::most
    replaced,     // another waiter has taken our place
    other_kind,   // the name is in use, but not as a lock of this kind
    other_slots,  // it has another number of slots than Mode::slots
    asked,        // somebody asked for a lock that we had while we waited for another
    no_upgrade,   // the ancestor holds it as a reader: a writer would wait for it for ever
    immortal,     // another program holds it without a time, and nobody has said how long to wait
  };
  Outcome outcome = Outcome::held;
  std::optional<Hold> hold;                // granted
  std::optional<milliseconds> expires_in;  // held: until it may be available; none: nobody knows
  std::optional<long long> ahead;          // held: how many waiters stand in front of us; none: we are not in the queue
  std::string place;                       // held: see QueueRequest
  std::string other_channel;               // held: where it is told of its turn, too; "": nowhere
  std::string contested;  // held: why nobody has a majority of a quorum, for people; "": somebody has, or may have soon
  long long holders = 0;  // held: how many there are
  std::optional<HolderView> holder;  // held: one of them
  long long number = 0;              // queue_full: how many wait; other_slots: how many slots there are
  std::string by;                    // replaced, asked: who, for people
  OtherKind instead;                 // other_kind
};

enum class RenewOutcome { renewed, free, other_owner, other_kind, lease_unknown };

struct Renewed {
  RenewOutcome outcome = RenewOutcome::free;
  milliseconds found{};  // renewed: what was left of the lease before, by the server's clock
  OtherKind instead;     // other_kind
};

// The words that go with a release, for the history (lua/part/history.lua).
struct HistoryNote {
  std::string total;                // to which it adds one: losses, skips, forced; "": none
  std::vector<std::string> fields;  // of the entry, names and values; none: no entry
  bool only_if_held = false;        // nothing is written where the hold is not there any more
};

// `lease`: of a hold of this process; 0: somebody gives back a hold of which no more is known than this.
struct ReleaseRequest {
  Lock lock;
  OwnerId owner;
  std::string hold_id;
  milliseconds keep{};                // the last hold does not free the lock, but leaves it to run out after that time
  const HistoryNote* note = nullptr;  // null, or what the history is to say of it, also where the hold is gone
  milliseconds lease{};
};

enum class ReleaseOutcome { released, kept, free, other_owner, other_kind };

struct Released {
  ReleaseOutcome outcome = ReleaseOutcome::free;
  long long holds_left = 0;
  std::string fault;        // why waiters were not told, "" if they were
  bool unfinished = false;  // there was more to do than one script may take
  OtherKind instead;        // other_kind
  std::string token;      // free, other_owner: the last fencing token that was granted, "" if none is known. Untrusted
  std::string unwritten;  // released, kept: why the history could not be written, "" if it was or is not
  std::string unsure;     // why it is not known whether the server that has answered still was the master; "": it was
};

// One that stands in the queue.
struct WaiterView {
  HolderInfo who;
  std::string mode;  // read, write or empty
  milliseconds for_so_long{};
};

struct Status {
  enum class State {
    free,
    held,
    contested,  // of a quorum: somebody holds it on some servers, and nobody on a majority
    other_kind,
  };
  // The view of one server of a quorum.
  struct Server {
    std::string address, trouble;  // trouble: why it has not answered; "": it has
    State state = State::free;
    std::vector<HolderView> holders;
  };
  Lock lock;
  State state = State::free;
  OtherKind other_kind;             // what it is instead; of a string, held or not: what it may be else
  std::string token;                // the last one granted; may be empty
  long long slots = 0;              // of a semaphore that is in use
  long long number = 0;             // of holders
  std::vector<HolderView> holders;  // the first hundred of them
  long long waiting = 0;            // how many stand in the queue
  std::vector<WaiterView> queue;    // the first hundred of them, in order
  // The first hundred owner ids that stand in the queue of Redisson's RFairLock, in order. Untrusted text.
  std::vector<std::string> fair_queue;
  // How many clients listen where Redisson's wait for a release, but for our first waiter; one of ours that another has
  // overtaken may be among them. 0 of a quorum.
  long long listening = 0;
  std::vector<Server> servers;  // of a quorum; the rest is what a majority of them says
  std::string asked;            // the address, or those of a quorum, without passwords
  bool known = true;            // false: see is_known in lock/known.h, which somebody has asked

  const LockName& name() const { return lock.name; }
  // The first of them, which is the only one where there is one at most; none if nobody holds it.
  const HolderView* holder() const { return holders.empty() ? nullptr : &holders.front(); }
  // The one of `holders` that has held it longest, which renewals do not change. Those of whom nobody knows how long
  // come behind all others, by owner id. None if nobody holds it.
  const HolderView* oldest_holder() const;
};

}  // namespace rlock::lock
