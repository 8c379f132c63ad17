// SPDX-License-Identifier: MIT
// Deadlocks: jobs that wait for each other, each for a lock that another one holds while it waits. Pure: no server is
// asked here.
//
// A waiter's record says which locks it and its ancestors hold (HolderInfo::within). It waits for the holders of its
// lock, and a holder waits if a waiter among its descendants does. A plain lock, a string and a read-write lock are not
// free before all their holders have released them, so a waiter is stuck if one of the holders is. Of a semaphore, it
// is stuck if the slots that are free, or belong to holders that are not stuck, are fewer than it wants, or than a
// waiter wants behind which it has to stay. Stuck waiters that wait for each other are in a deadlock; others only wait
// for them.
//
// All members of a deadlock compute the same from the same queues. The youngest gives up: the one that joined its queue
// last, and of several the one with the largest id, apart from those that stay.
#pragma once

#include <functional>
#include <span>

#include "verbs/answers.h"

namespace rlock::lock {

struct Deadlock {
  struct Member {
    std::string id;
    HolderInfo who;
    milliseconds since{};  // it waits
    LockName waits_for;
    std::vector<std::size_t> next;  // members that hold that lock
  };
  std::vector<Member> members;  // sorted by id
  std::string essence;          // the members, what each waits for, and who holds that

  bool has(const std::string& id) const;
  // Null: all of them stay.
  const Member* youngest() const;
  // A shortest way from a member back to itself. `you`: the id of the member that is told: "you hold a, and pid 812 on
  // build-2 holds b and waits for a"; "": "pid 7 on build-1 holds a and waits for b, and pid 812 …". Escaped.
  std::string text(const std::string& you = "") const;
};

// The deadlocks among the waiters of these locks. Takes only waiters into account that are listening.
std::vector<Deadlock> deadlocks_in(std::span<const Status> locks);

// Looks at a lock; none: that was not possible.
using LookAt = std::function<std::optional<Status>(const LockName&)>;

// Adds the locks that the waiters of `locks` hold, those that the waiters of these hold, and so on: at most a hundred.
void add_held_by_waiters(std::vector<Status>& locks, const LookAt& look);

// Sets Status::deadlock, with the help of those that it adds for the time of the search.
void mark_deadlocks(std::vector<Status>& locks, const LookAt& look);

// The deadlock of a waiter that holds other locks. Searches backwards: from the waiters for these to the waiters for
// what they hold in turn, and so on. The locks are not looked at in the same moment, so a deadlock is certain only if
// two searches, one after the other, find it with the same essence: then everybody has waited, and has held what the
// others wait for, all the time in between.
std::optional<Deadlock> deadlock_of(const std::string& id, const AncestorLocks& within, const LookAt& look);

}  // namespace rlock::lock
