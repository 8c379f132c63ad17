// SPDX-License-Identifier: MIT
// Holds out of the entries of histories. Pure: no server is asked here.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lock/history.h"

namespace rlock::lock {

// Those of one stream. A hold has two entries where it was taken away: that, and before it that it was kept, or after
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
  // Newest first: those in front of the first one of which the other entry may still come, which is so for as many older
  // entries as `far`. The others stay.
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
