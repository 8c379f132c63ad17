// SPDX-License-Identifier: MIT
// The requests to the verbs on a lock (verbs/verbs.h), and their answers.
#pragma once

#include <map>
#include <variant>

#include "verbs/mode.h"
#include "verbs/name.h"

namespace rlock::lock {

// What a holder or waiter says about itself, for people.
struct HolderInfo : lua::SelfTexts {  // host, user, command, reason: lua/07_marks.lua
  long pid = 0;
  bool listens = false;     // it can be asked to stop, see ask_to_stop
  bool in_history = false;  // it records its hold when that is over
  bool ended = false;       // it has ended, and left the lock to expire
  // The lease that the holder extends at each third of it; 0: it does not renew, or this is unknown.
  milliseconds renewal{};

  // "alice@ci-7"
  std::string user_and_host() const { return escaped(user, 40) + "@" + escaped(host, 80); }
  // "alice@ci-7 pid 4242"; without a pid that is 0, because the process has ended
  std::string process() const { return user_and_host() + (pid > 0 ? " pid " + std::to_string(pid) : ""); }
};

// One hold of a lock, as long as its lease is renewed.
struct Hold {
  Lock lock;
  OwnerId owner;
  std::string id;     // unique among the holds of one owner
  std::string token;  // fencing token, decimal
  milliseconds lease{};
  TimePoint sent;           // just before the successful request was sent: deadlines count from here
  Slots slots{};            // of a semaphore
  bool in_history = false;  // it is recorded when it is over

  const LockName& name() const { return lock.name; }
};

// An owner that holds a lock, as others see it.
struct HolderView {
  std::string owner;  // untrusted text; of a long string, its beginning
  std::string mode;   // read, write or empty
  long long holds = 0;
  // Words of which there is a new one with each command that begins under this hold. Of a quorum: those of all servers.
  // Untrusted
  std::string begun;
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
  std::vector<milliseconds> lasted;  // how long the last holds of this lock lasted, newest first; empty: unknown
  Slots slots;                       // of a semaphore

  // Whether a command runs under it, which `rlock run` would have to stop. A keeper (acquire --for-pid) describes
  // another process than its own, and the process of run --owner is not known.
  bool is_of_run() const { return who.listens && (who.pid == 0 || owner.ends_with(":" + std::to_string(who.pid))); }
};

// What is to run only once (lua/features/08_once.lua).
struct Once {
  std::string key;      // of a period: "per day", or another one
  long long start = 0;  // of the period, a number that grows with them; 0: it is no period
};

// A success of it that a release records, to be remembered for `lasts`. Or a failure, beside the last success.
struct Success {
  Once once;
  milliseconds lasts{};
  HolderInfo who;
  int status = 0;  // of the job; other than 0: it has failed
};

// In front of the key of a failure, where a server remembers it.
inline constexpr char kFailed = '\1';

// A success or a failure that a server remembers. All texts are untrusted.
struct PastSuccess {
  std::string key;
  long long start = 0;   // as in Once; of a failure, its status
  milliseconds until{};  // remembered until then, since 1970 by the server's clock
  milliseconds at{};     // when it was
  HolderInfo who;        // without a reason
};

// What is remembered of one lock.
struct Successes {
  milliseconds now{};               // the server's clock, since 1970
  std::vector<PastSuccess> known;   // newest first; of thousands, only some
  std::vector<PastSuccess> failed;  // those after the last success of their key, in the same order

  milliseconds ago(const PastSuccess& success) const { return std::max<milliseconds>(now - success.at, 0ms); }
};

// How a request waits in the queue (lua/08_queue.lua).
struct QueueRequest {
  std::string place;        // from the last reply; empty for a new waiter
  int priority = 0;         // higher ones come first
  milliseconds aging{};     // after which a waiter gains one priority; 0: never
  std::optional<int> most;  // join only if no more than this many wait already
  bool replace = false;     // take the place of the last waiter that asked for this, and be replaced by the next one
};

struct AcquireRequest {
  LockName name;
  Mode mode;
  OwnerId owner = OwnerId::fresh();      // stays the same during a wait
  std::optional<QueueRequest> queueing;  // none: do not wait
  bool outside = false;                  // it waits, but cannot be told just now that it is its turn, so no `queueing`
  std::optional<OwnerId> heir;           // for re-entry: of an ancestor that may hold the lock
  bool only_heir = false;                // grant it only to `heir`, which must hold it, and exactly once
  std::string hold_id;                   // empty: that of `owner`
  milliseconds lease{};
  HolderInfo holder;
  struct Conditions {
    std::optional<Once> once;  // it has not succeeded
  } conditions;                // of the grant; a hold that is put back is not asked again

  std::string hold() const { return hold_id.empty() ? owner.first_hold() : hold_id; }
  Lock lock() const { return {name, mode.layout()}; }
  // What the requester has if `to`, one of its owners, is granted the lock by a request that was sent at `sent`.
  Hold granted(const OwnerId& to, std::string token, TimePoint sent) const {
    return {lock(), to, hold(), std::move(token), lease, sent, {}, holder.in_history};
  }
  // The owners that the lock may be granted to: `owner`, and `heir` if there is one.
  std::vector<OwnerId> owners() const { return heir ? std::vector{owner, *heir} : std::vector{owner}; }
};

// The server may have forgotten grants, and gives none to newcomers (verbs/epoch.h).
struct HeldBack {
  milliseconds left{};      // until it grants again, to a request like this one
  milliseconds age{};       // of its data's present life
  bool unrecorded = false;  // it has no record of an earlier life
  std::string server;       // which one of a quorum; "": there is only one
};

// What a server has recorded of the present life of its data.
struct Epoch {
  bool current = false;             // false: the life is a newer one, which the next request for a lock will record
  std::optional<milliseconds> age;  // since when nothing was forgotten; none: it has never forgotten anything
  milliseconds longest{};           // the longest lease granted in this life
  milliseconds forgotten{};         // the longest lease that it may have forgotten
  std::optional<HeldBack> back;     // for requests with a lease that is not longer than these
  // A request with a longer lease than this is held back for as long as its lease is longer; none: no request is.
  std::optional<milliseconds> at_once;
  std::string accepted;  // who has ended the guard by hand; "": nobody. Untrusted
};

// The outcomes of a request for a lock, each with what is known then. Granted: the Hold.
struct Held {
  std::optional<milliseconds> expires_in;  // until it may be available; none: unknown
  std::optional<long long> ahead;          // how many waiters are ahead of us; none: we are not in the queue
  std::string place;                       // see QueueRequest
  std::string other_channel;               // another channel on which we are told that it is our turn; "": none
  std::optional<HeldBack> back;            // the server grants nothing yet, maybe although nobody holds the lock
  std::string contested;  // why no one has a majority of a quorum, for people; "": someone has, or soon may
  long long holders = 0;  // how many there are
  std::optional<HolderView> holder{};  // one of them
};
struct Immortal : HolderView {};  // another program's lock never expires, and the user has set no limit to the wait
struct OneNumber {
  long long number = 0;
};
struct QueueFull : OneNumber {};   // so many wait already, more than QueueRequest::most
struct OtherSlots : OneNumber {};  // the semaphore has so many slots, which is not Mode::slots
struct OneText {
  std::string text;
};
struct OtherNames : OneText {};  // of its slots, other than Mode::resources
struct Replaced : OneText {};    // by whom, for people: another waiter, which has taken our place
struct Endless : OneText {};     // why the wait would never end, and what to do instead, for people (lock::OnHeldOf)
struct AskedFor : OneText {};    // by whom, for people: a lock that we held while waiting for the next one
struct NotHeld {};               // by the heir, see AcquireRequest::only_heir
struct InUse {};                 // a job runs under the heir's hold, or it holds it more than once
struct NoUpgrade {};  // our ancestor's hold is not enough: for reading, of fewer slots, or to run something once
struct Succeeded {    // what is to run only once has already succeeded
  std::optional<PastSuccess> success;
  std::optional<milliseconds> ago;  // none: unknown
};

using Acquired = std::variant<Held, Hold, Immortal, Endless, QueueFull, Replaced, AskedFor, OtherKind, OtherSlots,
                              OtherNames, NotHeld, InUse, NoUpgrade, Succeeded>;

// Null: it is another outcome, or an error.
template <class Outcome>
const Outcome* as(const Result<Acquired>& acquired) {
  return acquired ? std::get_if<Outcome>(&*acquired) : nullptr;
}

enum class RenewOutcome { renewed, free, other_owner, other_kind, lease_unknown };

struct Renewed {
  RenewOutcome outcome = RenewOutcome::free;
  milliseconds found{};      // renewed: what was left of the lease before, by the server's clock
  OtherKind instead;         // other_kind
  std::string by{};          // free, other_owner: who has taken it away, for people; "": unknown
  bool untidy = false;       // a dead waiter is in the queue; any release removes it
  std::string unrecorded{};  // why the record of the epoch guard does not have the lease; untrusted; "": it has
};

// What a release records in the history (lua/features/08_history.lua).
struct HistoryNote {
  std::string total;                   // the one to increment: losses, skips, forced; "": none
  std::vector<std::string> fields;     // of the entry, names and values; none: no entry
  bool only_if_held = false;           // write nothing if the hold is gone
  std::optional<milliseconds> held{};  // how long, if that is to be remembered for forecasts
  std::vector<std::string> sums{};     // more totals, and what to add to them, if the hold is given back
  std::optional<Success> success;      // to be remembered, if the hold is not gone
};

struct ReleaseRequest {
  Lock lock;
  OwnerId owner;
  std::string hold_id;
  milliseconds keep{};                // if this is the last hold, let the lock expire after this time
  const HistoryNote* note = nullptr;  // null: record nothing; it is recorded even if the hold is gone
  milliseconds lease{};  // of a hold of this process; 0: another process's hold, of which only this is known
};

// changed: only of force_unlock.
enum class ReleaseOutcome { released, kept, free, other_owner, other_kind, changed };

struct Released {
  ReleaseOutcome outcome = ReleaseOutcome::free;
  long long holds_left = 0;
  std::string fault;        // why the waiters could not be told; "" if they were
  bool unfinished = false;  // there is more to do than one script may take
  OtherKind instead;        // other_kind
  std::string token;        // free, other_owner: the last fencing token granted; "": unknown. Untrusted
  std::string by;           // free, other_owner: who has taken it away, for people; "": unknown
  std::string unwritten;    // released, kept: why the history could not be written; "" if it was, or need not be
  bool remembered = false;  // released, kept: the success of the note
  std::string forgotten;    // released, kept: why it is not remembered; "" if it is, or there is none
  std::string unsure;       // why the server that answered may no longer have been the master; "": it was
};

// Whether that server has released the lock, or left it to expire.
inline bool ours(const Released& answer) {
  return answer.outcome == ReleaseOutcome::released || answer.outcome == ReleaseOutcome::kept;
}

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
  bool names_hidden = false;             // the user may not read them
  long long number = 0;                  // of holders
  std::vector<HolderView> holders;       // the first hundred
  long long waiting = 0;                 // the length of the queue
  std::vector<WaiterView> queue;         // the first hundred, in order
  // The first hundred owner ids in the queue of Redisson's RFairLock, in order. Untrusted text.
  std::vector<std::string> fair_queue;
  // How many clients listen where Redisson's wait for a release, not counting rlock's first waiter; a waiter of rlock
  // that another one has overtaken may be counted for a moment. 0 for a quorum.
  long long listening = 0;
  std::vector<Server> servers;         // of a quorum; everything else is what a majority says
  std::string asked;                   // the address or addresses that were asked, without passwords
  std::optional<Epoch> epoch;          // of the only server; none: it has no record, or was not asked for it
  std::optional<Successes> successes;  // what is remembered for jobs that run once; none: not asked for
  bool known = true;                   // false: see is_known in lock/listing.h, if that was asked

  const LockName& name() const { return lock.name; }
  // That owner's hold; null: it is not among `holders`.
  const HolderView* holder_of(const std::string& owner) const {
    const auto found = std::ranges::find(holders, owner, &HolderView::owner);
    return found == holders.end() ? nullptr : &*found;
  }
  // The first one; null if nobody holds it.
  const HolderView* holder() const { return holders.empty() ? nullptr : &holders.front(); }
  // The one that has held it longest, regardless of renewals. Those that do not say how long come last, by owner id.
  // Null if nobody holds it.
  const HolderView* oldest_holder() const;
};

}  // namespace rlock::lock
