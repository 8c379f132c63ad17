// SPDX-License-Identifier: MIT
// Holds that are over: an entry of a lock's history, as it is written (lua/part/history.lua) and read.
// man/rlock-protocol.7 lists its fields.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "lock/answers.h"
#include "redis/reply.h"

namespace rlock::lock {

struct PastHold {
  enum class Outcome {
    released,
    kept,    // left to run out, for --min-hold
    gone,    // when its holder wanted to release it, it was not there any more
    forced,  // taken away
  };
  LockName name;
  Outcome outcome = Outcome::released;
  milliseconds ended{};  // when that was written, by the server's clock, since 1970
  milliseconds written{};  // by its place in the stream, which is never earlier, and falls from entry to entry
  std::optional<milliseconds> held, waited;
  std::string owner, token, kind;  // kind: the noun of its layout
  HolderInfo who;
  // The end of it: exited, signalled, lost, timed-out, hook-failed, not-found, not-executable, error; stopped, because of
  // another lock of the same job; released by hand; expired, as the next grant has found it; or "" where nobody knows.
  // Of another version, or of somebody else, it may be any text.
  std::string end;
  std::optional<int> value;  // exited: the status; signalled: the signal
  std::string why;           // lost, stopped
  std::string leftovers;     // that the command has left, and that were ended because of that: names and pids
  std::string by;            // who has taken it away, or has asked for it with success

  std::optional<milliseconds> since() const { return held ? std::optional(ended - *held) : std::nullopt; }
  bool taken_away() const { return outcome == Outcome::forced || !by.empty(); }
  // Its lease ran out, and its job has not said why: it died, or sleeps.
  bool expired() const { return outcome == Outcome::gone && end == "expired"; }
  // Its holder did not hold it to the end.
  bool lost() const { return outcome == Outcome::gone || end == "lost"; }
  // The command succeeded, or nobody said that it did not, and the lock was released by its holder.
  bool fine() const;
};

// The fields of its entry. The outcome, the name and the time are written by the script.
std::vector<std::string> fields_of(const PastHold& hold);

// One entry of XREVRANGE: {id, {field, value …}}. All texts are cut, all numbers limited. None: it has not that shape.
std::optional<PastHold> read_entry(const LockName& name, const redis::Reply& entry);

// The totals of a lock.
struct Totals {
  long long losses = 0, skips = 0, forced = 0;
};
// Of HMGET key losses skips forced.
Totals read_totals(const redis::Reply& reply);

// A hold of ours; when and how it ended is left to the caller.
PastHold past_of(const Hold& hold, const HolderInfo& who);

// The hold of that owner, as far as others see it, as if it ended now.
PastHold past_of(const Status& status, const OwnerId& owner);

// The release by a job that has ended.
HistoryNote note_of(const PastHold& hold);
// One that has not got the lock is counted.
HistoryNote note_of_skip();

// The word for an outcome, on the wire and in JSON.
std::string_view word(PastHold::Outcome outcome);

}  // namespace rlock::lock
