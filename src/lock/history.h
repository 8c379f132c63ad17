// SPDX-License-Identifier: MIT
// Past holds: how entries of a lock's history are written (lua/features/08_history.lua) and read, and how they combine
// into holds. Pure: no server is asked here. man/rlock-protocol.7 lists the fields.
#pragma once

#include <array>
#include <cstddef>
#include <deque>

#include "lock/forecast.h"
#include "redis/reply.h"

namespace rlock::lock {

struct PastHold {
  enum class Outcome {
    released,
    kept,    // left to expire, for --min-hold
    gone,    // it no longer existed when its holder released it
    forced,  // taken away
  };
  LockName name;
  Outcome outcome = Outcome::released;
  milliseconds ended{};    // by the server's clock, since 1970
  milliseconds written{};  // by the id of the entry: not before `ended`; each older entry has an earlier one
  std::optional<milliseconds> held, waited;
  std::string owner, token, kind;  // kind: the noun of its layout
  Slots slots;                     // of a semaphore
  HolderInfo who;
  // How it ended: exited, signalled, lost, timed-out, hook-failed, not-found, not-executable, error; stopped, because
  // of another lock of the same job; released by hand; expired, as noticed by the next grant; or "" if unknown. Other
  // versions and other programs may write any text.
  std::string end;
  std::optional<int> value;  // exited: the status; signalled: the signal
  std::string why;           // lost, stopped
  std::string once;          // Once::key of what was to run once; `end` and `value` say whether it succeeded
  std::string leftovers;     // names and pids of processes that the command left behind, and that rlock ended
  std::string by;            // who took it away, or successfully asked for it

  std::optional<milliseconds> since() const { return held ? std::optional(ended - *held) : std::nullopt; }
  bool taken_away() const { return outcome == Outcome::forced || !by.empty(); }
  // Its lease ended, and its job has not said why: it died, or sleeps.
  bool expired() const { return outcome == Outcome::gone && end == "expired"; }
  // Its holder did not hold it to the end.
  bool lost() const { return outcome == Outcome::gone || end == "lost"; }
  // The holder released the lock, and the command did not fail, as far as is known.
  bool fine() const;
};

// In bytes, including its texts.
std::size_t size_of(const PastHold& hold);

// The fields of its entry. The script adds the outcome, the name and the time.
std::vector<std::string> fields_of(const PastHold& hold);

// One entry of XREVRANGE: {id, {field, value …}}. All texts are cut, and all numbers limited. Returns nothing if it
// is malformed.
std::optional<PastHold> read_entry(const LockName& name, const redis::Reply& entry);
std::optional<PastHold> read_entry(const LockName& name, std::string_view id,
                                   const std::map<std::string, std::string>& fields);

// How long something took: how often it took up to each of these seconds, but longer than the one before; how often it
// took longer; and how long (ms) together.
struct Histogram {
  static constexpr std::array kLimits{1, 10, 60, 600, 3600};
  std::array<long long, kLimits.size() + 1> counts{};
  long long sum = 0;
};

struct Totals {
  long long losses = 0, skips = 0, forced = 0;
  Histogram waited, held;  // of recorded holds that were given back

  // Each number, and its field in the hash.
  std::vector<std::pair<std::string, long long*>> fields();
};
// The reply to HMGET with the fields.
Totals read_totals(const redis::Reply& reply);

// A hold of this process; the caller adds when and how it ended.
PastHold past_of(const Hold& hold, const HolderInfo& who);

// What a status shows of that owner's hold, as a past hold that ends now.
PastHold past_of(const Status& status, const OwnerId& owner);

// For the release by a job that has ended.
HistoryNote note_of(const PastHold& hold);

// The word for an outcome, on the wire and in JSON.
std::string_view word(PastHold::Outcome outcome);

struct HistoryQuery {
  std::vector<LockName> names;              // none: all locks with a history
  std::size_t limit = 50;                   // of holds
  std::optional<milliseconds> since;        // ended at that time or later, since 1970
  std::optional<milliseconds> within = {};  // the same by the server's clock; takes precedence over `since`
  std::optional<milliseconds> until = {};   // ended no later, since 1970
  bool failed = false;                      // only those that are not fine()
  bool fine = false;                        // only those that are
  bool of_each = false;                     // the limit is for each lock
  bool fits = false;                        // only the newest that fit into 32 MiB, if the limit is not for each lock

  bool wants(const PastHold& hold) const {
    return !(failed && hold.fine()) && !(fine && !hold.fine()) && !(since && hold.ended < *since) &&
           !(until && hold.ended > *until);
  }
};

// Combines the entries of one stream into holds. A hold that was taken away has two entries if its holder had left it
// to expire before, or found it gone afterwards. So has a hold whose lease ended, if its holder noticed that later. The
// holds of another program stay separate, because it may use one owner id many times.
class StreamOfHolds {
 public:
  // Keeps only those holds for whose newest entry `wanted` returns true.
  explicit StreamOfHolds(std::function<bool(const PastHold&)> wanted = {}) : wanted_(std::move(wanted)) {}

  void add(PastHold entry);

  // How many holds were not taken yet, and how many bytes they have.
  std::size_t count() const { return holds_.size(); }
  std::size_t size() const { return size_; }
  // Whether an older entry may still belong to one of them.
  bool open() const { return !open_.empty(); }
  // The newest hold. Null: there is none, or one of the next `far` entries may still belong to it.
  const PastHold* next(std::size_t far) const;
  // REQUIRES: there is one.
  PastHold take();

 private:
  struct Found {
    PastHold hold;
    std::size_t seen_before;  // the number of entries before its own
  };
  std::function<bool(const PastHold&)> wanted_;
  std::deque<Found> holds_;
  std::size_t seen_ = 0, taken_ = 0, size_ = 0;
  std::map<std::string, std::size_t> open_;  // owner → number of its hold, counting those that were taken
};

// Sorts by when they ended, newest first and otherwise stable; keeps at most `limit`.
std::vector<PastHold> newest_of(std::vector<PastHold> holds, std::size_t limit);

// Merges the holds of a quorum's servers, newest first, at most `limit`. The n-th newest hold of a lock, owner and
// token is the same hold on all servers. Its outcome is forced if one server says so, otherwise what most of them say.
// A hold whose lease ended counts as such only if most servers say so.
std::vector<PastHold> merged_holds(const std::vector<std::vector<PastHold>>& servers, std::size_t limit);

}  // namespace rlock::lock
