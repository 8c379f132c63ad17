// SPDX-License-Identifier: MIT
// The requests to the verbs on a lock (verbs/verbs.h), and their answers.
#pragma once

#include "verbs/mode.h"
#include "verbs/name.h"

namespace rlock::lock {

// What a holder or waiter says about itself, for people.
struct HolderInfo {
  std::string host, user, command, reason;
  long pid = 0;
  bool listens = false;     // it can be asked to stop, see ask_to_stop
  bool in_history = false;  // it records its hold when that is over
  bool ended = false;       // it has ended, and left the lock to expire
  // The lease that the holder extends at each third of it; 0: it does not renew, or this is unknown.
  milliseconds renewal{};
};

// The texts of HolderInfo, by their names in Redis (lua/part/self.lua, which has the same ones), history and JSON.
struct HolderText {
  const char* name;
  std::string HolderInfo::* text;
};
inline constexpr HolderText kHolderTexts[] = {{"host", &HolderInfo::host},
                                              {"user", &HolderInfo::user},
                                              {"command", &HolderInfo::command},
                                              {"reason", &HolderInfo::reason}};

// One hold of a lock, as long as its lease is renewed.
struct Hold {
  Lock lock;
  OwnerId owner;
  std::string id;     // unique among the holds of one owner
  std::string token;  // fencing token, decimal
  milliseconds lease{};
  TimePoint sent;  // just before the successful request was sent: deadlines count from here
  Slots slots{};   // of a semaphore

  const LockName& name() const { return lock.name; }
};

// An owner that holds a lock, as others see it.
struct HolderView {
  std::string owner;  // untrusted text; of a long string, its beginning
  std::string mode;   // read, write or empty
  long long holds = 0;
  std::optional<milliseconds> expires_in;  // none: never
  bool by_set = false;                     // another program has written the string with SET NX
  bool described = false;                  // it took the lock with rlock, and the following members are known:
  HolderInfo who;
  std::optional<milliseconds> since;  // server's clock, since 1970
  std::optional<milliseconds> held_for;
  std::optional<milliseconds> lease;
  std::optional<milliseconds> renewed_ago;  // none: it is not renewed, or this is unknown
  milliseconds overdue{};                   // how long the next renewal has been missing: overdue_for in verbs/lease.h
  std::string token;
  Slots slots;  // of a semaphore
};

// How a request waits in the queue (lua/part/queue.lua).
struct QueueRequest {
  std::string place;        // from the last reply; empty for a new waiter
  int priority = 0;         // higher ones come first
  std::optional<int> most;  // join only if no more than this many wait already
  bool replace = false;     // take the place of the last waiter that asked for this, and be replaced by the next one
};

struct AcquireRequest {
  LockName name;
  Mode mode;
  OwnerId owner = OwnerId::fresh();      // stays the same during a wait
  std::optional<QueueRequest> queueing;  // none: do not wait
  std::optional<OwnerId> heir;           // for re-entry: of an ancestor that may hold the lock
  std::string hold_id;                   // empty: that of `owner`
  milliseconds lease{};
  HolderInfo holder;

  std::string hold() const { return hold_id.empty() ? owner.first_hold() : hold_id; }
  Lock lock() const { return {name, mode.layout()}; }
  // The owners that the lock may be granted to: `owner`, and `heir` if there is one.
  std::vector<OwnerId> owners() const { return heir ? std::vector{owner, *heir} : std::vector{owner}; }
};

// The server may have forgotten grants, and gives none to newcomers (verbs/epoch.h).
struct HeldBack {
  milliseconds left{};      // until it grants again, to a request like this one
  milliseconds age{};       // of its data's present life
  bool unrecorded = false;  // it has no record of an earlier life
};

// What a server has recorded of the present life of its data.
struct Epoch {
  bool current = false;             // false: the life is a newer one, which the next request for a lock will record
  std::optional<milliseconds> age;  // since when nothing was forgotten; none: it has never forgotten anything
  milliseconds longest{};           // the longest lease granted in this life
  milliseconds forgotten{};         // the longest lease that it may have forgotten
  std::optional<HeldBack> back;     // for requests with a lease that is not longer than these
  std::string accepted;             // who has ended the guard by hand; "": nobody. Untrusted
};

struct Acquired {
  enum class Outcome {
    granted,
    held,
    queue_full,   // more wait already than QueueRequest::most
    replaced,     // another waiter has taken our place
    other_kind,   // the key holds something other than a lock of this kind
    other_slots,  // the semaphore has another number of slots than Mode::slots
    other_names,  // its slots have other names than Mode::resources
    asked,        // another process wants a lock that we held while waiting for the next one
    no_upgrade,   // our ancestor holds it for reading, or has fewer slots: we would wait for it forever
    immortal,     // another program's lock never expires, and the user has set no limit to the wait
  };
  Outcome outcome = Outcome::held;
  std::optional<Hold> hold;                // granted
  std::optional<milliseconds> expires_in;  // held: until it may be available; none: unknown
  std::optional<long long> ahead;          // held: how many waiters are ahead of us; none: we are not in the queue
  std::string place;                       // held: see QueueRequest
  std::string other_channel;               // held: another channel on which we are told that it is our turn; "": none
  std::optional<HeldBack> back;            // held: the server grants nothing yet, maybe although nobody holds the lock
  std::string contested;  // held: why no one has a majority of a quorum, for people; "": someone has, or soon may
  long long holders = 0;  // held: how many there are
  std::optional<HolderView> holder;  // held: one of them
  long long number = 0;              // queue_full: how many wait; other_slots: how many slots there are
  std::string by;                    // replaced, asked: by whom, for people; other_names: the names
  OtherKind instead;                 // other_kind
};

// over: it has passed a waiter that could run now, and must not keep it waiting (lua/part/backfill.lua).
enum class RenewOutcome { renewed, free, other_owner, other_kind, lease_unknown, over };

struct Renewed {
  RenewOutcome outcome = RenewOutcome::free;
  milliseconds found{};  // renewed: what was left of the lease before, by the server's clock
  OtherKind instead;     // other_kind
};

// What a release records in the history (lua/part/history.lua).
struct HistoryNote {
  std::string total;                // the one to increment: losses, skips, forced; "": none
  std::vector<std::string> fields;  // of the entry, names and values; none: no entry
  bool only_if_held = false;        // write nothing if the hold is gone
};

struct ReleaseRequest {
  Lock lock;
  OwnerId owner;
  std::string hold_id;
  milliseconds keep{};                // if this is the last hold, let the lock expire after this time
  const HistoryNote* note = nullptr;  // null: record nothing; it is recorded even if the hold is gone
  milliseconds lease{};  // of a hold of this process; 0: another process's hold, of which only this is known
};

enum class ReleaseOutcome { released, kept, free, other_owner, other_kind };

struct Released {
  ReleaseOutcome outcome = ReleaseOutcome::free;
  long long holds_left = 0;
  std::string fault;        // why the waiters could not be told; "" if they were
  bool unfinished = false;  // there is more to do than one script may take
  OtherKind instead;        // other_kind
  std::string token;        // free, other_owner: the last fencing token granted; "": unknown. Untrusted
  std::string unwritten;    // released, kept: why the history could not be written; "" if it was, or need not be
  std::string unsure;       // why the server that answered may no longer have been the master; "": it was
};

// A waiter in the queue, as others see it.
struct WaiterView {
  HolderInfo who;
  std::string mode;     // read, write or empty
  long long taken = 1;  // how many slots it wants, of a semaphore
  milliseconds for_so_long{};
};

struct Status {
  enum class State {
    free,
    held,
    contested,  // of a quorum: held on some servers, but by no one on a majority
    other_kind,
  };
  // The view of one server of a quorum.
  struct Server {
    std::string address, trouble;  // trouble: why it has not answered; "" if it has
    State state = State::free;
    std::vector<HolderView> holders;
    std::optional<Epoch> epoch{};  // as in Status
  };
  Lock lock;
  State state = State::free;
  OtherKind other_kind;                  // what it is instead; of a string, held or not, what else it may be
  std::string token;                     // the last one granted; may be empty
  long long slots = 0;                   // of a semaphore that is in use
  long long taken = 0;                   // how many of them are taken
  std::vector<std::string> resources{};  // their names, if they have some. Untrusted
  long long number = 0;                  // of holders
  std::vector<HolderView> holders;       // the first hundred
  long long waiting = 0;                 // the length of the queue
  std::vector<WaiterView> queue;         // the first hundred, in order
  // The first hundred owner ids in the queue of Redisson's RFairLock, in order. Untrusted text.
  std::vector<std::string> fair_queue;
  // How many clients listen where Redisson's wait for a release, not counting rlock's first waiter; a waiter of rlock
  // that another one has overtaken may be counted. 0 for a quorum.
  long long listening = 0;
  std::vector<Server> servers;  // of a quorum; everything else is what a majority says
  std::string asked;            // the address or addresses that were asked, without passwords
  std::optional<Epoch> epoch;   // of the only server; none: it has no record, or was not asked for it
  bool known = true;            // false: see is_known in lock/listing.h, if that was asked

  const LockName& name() const { return lock.name; }
  // The first one; null if nobody holds it.
  const HolderView* holder() const { return holders.empty() ? nullptr : &holders.front(); }
  // The one that has held it longest, regardless of renewals. Those that do not say how long come last, by owner id.
  // Null if nobody holds it.
  const HolderView* oldest_holder() const;
};

}  // namespace rlock::lock
