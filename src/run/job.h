// SPDX-License-Identifier: MIT
// A command to run, its locks, and its options; and how the locks are released.
#pragma once

#include "lock/history.h"
#include "lock/servers.h"
#include "run/command.h"
#include "run/guard_state.h"
#include "run/life.h"
#include "verbs/lease.h"

namespace rlock::run {

// What happened to a lock.
struct LockEvent {
  enum class Kind { lost, released, wanted } kind = Kind::released;
  std::string why{};     // if lost
  std::size_t hold = 0;  // its index
  // If released: how long --min-hold still keeps it; none: it is left to its owner.
  std::optional<milliseconds> free_in{};
  std::optional<bool> remembered{};  // if released: whether the success of the command is; none: there is none to be
  lock::WaiterView waiter{};         // if wanted: the first one in the queue
};

struct Job {
  Command command;
  std::vector<lock::Hold> holds;  // at least one, all with the same lease; before the grant they have no token
  lock::LeaseTiming timing;
  milliseconds exchange{};  // the time limit of each exchange with the server
  bool renew = true;        // false: the tree is ended before the first lease ends
  std::optional<milliseconds> max_hold;
  milliseconds min_hold{};
  Leftovers leftovers = Leftovers::kill;
  bool isolate = false;
  Hooks hooks;
  bool watches_waiters = false;  // reports them, and runs hooks.on_wanted
  Inherited inherited;           // by this process; the guards close it
  // Who the job is, for the history; none: no history is written. And when it asked for the lock.
  std::optional<lock::HolderInfo> in_history;
  TimePoint asked_at{};
  // With rlock run --owner, that owner has acquired the locks before, and the job has one more hold of each.
  enum class Borrowed {
    no,
    kept,      // when the job ends, the owner still holds them, for `left_to_owner`
    released,  // when the job ends, the owner's first hold is released, too
  } borrowed = Borrowed::no;
  milliseconds left_to_owner{};          // 0: for as long as they were granted
  std::optional<lock::Success> success;  // what the release records if the command succeeds
  std::function<void(const LockEvent&)> report;

  std::string name() const { return display(holds); }
  LifePlan plan() const {
    return {.on_acquire = !hooks.on_acquire.empty(),
            .on_release = !hooks.on_release.empty(),
            .hook_limit = hooks.limit,
            .grace = timing.kill_at - timing.terminate_at,
            .max_hold = max_hold,
            .leftovers = leftovers};
  }
};

// A job, and what its guards use for it.
struct JobContext {
  const Job& job;
  lock::Servers& client;
  SignalBlock& signals;
  GuardState& shared;
};

// Why the lock counts as lost.
struct Loss {
  std::string why;
  std::optional<std::size_t> hold;  // its index; none for all of them
  bool ours = true;                 // it, or a minority of a quorum, may still be ours, so it has to be released
  std::string by = {};              // who has asked for it; "" if nobody

  bool concerns(std::size_t index) const { return !hold || *hold == index; }
};

// The loss of the hold with that index; null if it was not lost.
inline const Loss* loss_of(const std::optional<Loss>& loss, std::size_t index) {
  return loss && loss->concerns(index) ? &*loss : nullptr;
}

// Whether that hold needs no release. One that is gone is released only to write the history, or to give back the other
// slots of its owner.
inline bool needs_no_release(const Loss* lost, const lock::Hold& hold, bool in_history) {
  return lost && !lost->ours && !in_history && hold.owner.slots() == 1;
}

// Warns if the server that released the lock may no longer have been the master. `which`: the lock, for the message.
void warn_if_unsure(const std::string& which, const lock::Released& released);

// The hold with that index, for the history. `who` has held it from `since` until now. If the job lost another lock,
// this one was released because of that. If it lost none, `end` says how the hold ended.
lock::PastHold past_of(std::span<const lock::Hold> holds, std::size_t index, const lock::HolderInfo& who,
                       TimePoint since, const std::optional<Loss>& loss, std::string_view end);

// Releases all locks of a job that was not started, and reports failures. `seen`: somebody is left to report to.
// Otherwise it tries only briefly, and says nothing.
void release_all(lock::Servers& client, const Job& job, bool seen);

// Reports that the lock counts as lost. `what` is the message, with the consequence.
void report_loss(const Job& job, GuardState& shared, const Loss& loss, const std::string& what);

// The result of a job whose tree is empty.
struct Outcome {
  JobEnd end;
  std::optional<TimePoint> begun;  // when it got the lock
  std::optional<Loss> loss;        // if known
  TimePoint keep_until{};          // by --min-hold
  std::string left_behind{};       // LeftBehind::who
  bool told_to_stop = false;       // Life::was_told_to_stop

  int status() const { return loss ? kLost : end.status(); }
  bool succeeded() const { return status() == 0; }
  bool is_to_remember(const Job& job) const { return job.success && succeeded() && !told_to_stop; }
};

// Releases all its locks. A failure does not change how the job ended. But if a lock turns out to be somebody else's,
// it was lost while the job ran; this is reported and returned.
std::optional<Loss> give_back(const JobContext& context, const Outcome& outcome);

}  // namespace rlock::run
