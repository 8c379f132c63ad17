// SPDX-License-Identifier: MIT
// Past holds: the entries of a lock's history, as they are written (lua/part/history.lua) and read, and the holds that
// they make together. Pure: no server is asked here. man/rlock-protocol.7 lists the fields.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
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
  milliseconds ended{};    // when that was written, by the server's clock, since 1970
  milliseconds written{};  // by its place in the stream, which is never earlier, and falls from entry to entry
  std::optional<milliseconds> held, waited;
  std::string owner, token, kind;  // kind: the noun of its layout
  HolderInfo who;
  // The end of it: exited, signalled, lost, timed-out, hook-failed, not-found, not-executable, error; stopped, because
  // of another lock of the same job; released by hand; expired, as the next grant has found it; or "" where nobody
  // knows. Of another version, or of somebody else, it may be any text.
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

// The holds that are wanted out of histories.
struct HistoryQuery {
  std::vector<LockName> names;              // none: of all locks that have a history
  std::size_t limit = 50;                   // holds at most
  std::optional<milliseconds> since;        // ended at that time or later, since 1970
  std::optional<milliseconds> within = {};  // ended no longer ago, by the clock of the server; overrules `since`
  bool failed = false;                      // only those that are not PastHold::fine()
  bool of_each = false;                     // the limit is that of each lock, not of all

  bool wants(const PastHold& hold) const { return !(failed && hold.fine()) && !(since && hold.ended < *since); }
};

// The holds of one stream. One has two entries where it was taken away: that, and before it that it was kept, or after
// it that its holder found it gone; or where its lease ran out, and its holder noticed that later. An owner of another
// program may hold a lock many times: its holds stay apart.
class StreamOfHolds {
 public:
  // `wanted`: of which holds; it is asked when all is known that decides: an entry that tells more of a hold makes none
  // that is not wanted one that is.
  explicit StreamOfHolds(std::function<bool(const PastHold&)> wanted = {}) : wanted_(std::move(wanted)) {}

  // The next older entry.
  void add(PastHold entry);

  std::size_t size() const { return holds_.size(); }
  const std::vector<PastHold>& holds() const { return holds_; }
  // An older entry may belong to one of them.
  bool open() const { return !open_.empty(); }
  // Newest first: those in front of the first one of which the other entry may still come, which is so for as many
  // older entries as `far`. The others stay.
  std::vector<PastHold> take_settled(std::size_t far);
  // Newest first, `limit` at most. Nothing is here from then on.
  std::vector<PastHold> take(std::size_t limit);

 private:
  std::function<bool(const PastHold&)> wanted_;
  std::vector<PastHold> holds_;
  std::vector<std::size_t> seen_before_;  // of each hold, the entries that came before its own
  std::size_t seen_ = 0;
  std::map<std::string, std::size_t> open_;  // by the owner, the index
};

// Of all locks, newest first; those that ended at the same time stay in their order. `limit` at most.
std::vector<PastHold> newest_of(std::vector<PastHold> holds, std::size_t limit);

// The holds that the servers of a quorum have, taken together, newest first, `limit` at most. Holds of the same lock,
// owner and token on several servers are one, the newest with the newest; its outcome is forced if one server says so,
// else that which most say. One whose lease ran out is one only where most say so.
std::vector<PastHold> merged_holds(const std::vector<std::vector<PastHold>>& servers, std::size_t limit);

}  // namespace rlock::lock
