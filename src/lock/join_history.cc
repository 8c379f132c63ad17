// SPDX-License-Identifier: MIT
#include "lock/join_history.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "lock/ballot.h"

namespace rlock::lock {
namespace {

using Outcome = PastHold::Outcome;

// Adds from another entry of the same hold, where this one lacks it.
void complete(PastHold& hold, const PastHold& other) {
  if (hold.end.empty()) std::tie(hold.end, hold.value, hold.why) = std::tie(other.end, other.value, other.why);
  if (hold.leftovers.empty()) hold.leftovers = other.leftovers;
  if (hold.by.empty()) hold.by = other.by;
  if (!hold.waited) hold.waited = other.waited;
}

bool are_one(const PastHold& newer, const PastHold& older) {
  if (newer.outcome == Outcome::gone) return older.outcome == Outcome::forced || (older.expired() && !newer.expired());
  return newer.outcome == Outcome::forced && older.outcome == Outcome::kept;
}

// REQUIRES: there is one.
PastHold one_of(const std::vector<PastHold>& seen) {
  const auto say = [&](Outcome outcome) { return std::ranges::count(seen, outcome, &PastHold::outcome); };
  Outcome outcome = seen.front().outcome;
  for (const PastHold& hold : seen) {
    if (say(hold.outcome) > say(outcome)) outcome = hold.outcome;
  }
  if (say(Outcome::forced) > 0) outcome = Outcome::forced;
  PastHold one = *std::ranges::find(seen, outcome, &PastHold::outcome);
  for (const PastHold& hold : seen) complete(one, hold);
  return one;
}

}  // namespace

void StreamOfHolds::add(PastHold entry) {
  const std::size_t before = seen_++;
  const auto found = open_.find(entry.owner);
  if (found != open_.end() && are_one(holds_[found->second], entry)) {
    PastHold& hold = holds_[found->second];
    complete(hold, entry);
    if (!entry.expired()) hold.outcome = Outcome::forced;
    open_.erase(found);
    return;
  }
  if (wanted_ && !wanted_(entry)) return;
  const bool open = entry.outcome == Outcome::gone || entry.outcome == Outcome::forced;
  if (open && !entry.owner.empty()) open_.insert_or_assign(entry.owner, holds_.size());
  holds_.push_back(std::move(entry));
  seen_before_.push_back(before);
}

std::vector<PastHold> StreamOfHolds::take_settled(std::size_t far) {
  const auto is_open = [&](std::size_t i) {
    const auto found = open_.find(holds_[i].owner);
    return found != open_.end() && found->second == i;
  };
  std::size_t settled = 0;
  while (settled < holds_.size() && (!is_open(settled) || seen_ - seen_before_[settled] > far)) ++settled;
  const auto end = static_cast<std::ptrdiff_t>(settled);
  std::vector<PastHold> taken(std::make_move_iterator(holds_.begin()), std::make_move_iterator(holds_.begin() + end));
  holds_.erase(holds_.begin(), holds_.begin() + end);
  seen_before_.erase(seen_before_.begin(), seen_before_.begin() + end);
  std::erase_if(open_, [&](const auto& open) { return open.second < settled; });
  for (auto& [owner, i] : open_) i -= settled;
  return taken;
}

std::vector<PastHold> StreamOfHolds::take(std::size_t limit) {
  open_.clear();
  seen_before_.clear();
  if (holds_.size() > limit) holds_.erase(holds_.begin() + static_cast<std::ptrdiff_t>(limit), holds_.end());
  return std::exchange(holds_, {});
}

std::vector<PastHold> newest_of(std::vector<PastHold> holds, std::size_t limit) {
  std::ranges::stable_sort(holds, std::ranges::greater{}, &PastHold::ended);
  if (holds.size() > limit) holds.erase(holds.begin() + static_cast<std::ptrdiff_t>(limit), holds.end());
  return holds;
}

std::vector<PastHold> merged_holds(const std::vector<std::vector<PastHold>>& servers, std::size_t limit) {
  // Name, owner, token, and how many of the same stand in front.
  using Key = std::tuple<std::string, std::string, std::string, std::size_t>;
  std::map<Key, std::vector<PastHold>> seen;
  std::vector<PastHold> all;
  for (const std::vector<PastHold>& server : servers) {
    std::map<Key, std::size_t> before;
    for (const PastHold& hold : server) {
      if (hold.owner.empty()) {
        all.push_back(hold);
        continue;
      }
      const Key first{hold.name.text(), hold.owner, hold.token, 0};
      Key key = first;
      std::get<std::size_t>(key) = before[first]++;
      seen[key].push_back(hold);
    }
  }
  for (const auto& [key, holds] : seen) {
    PastHold hold = one_of(holds);
    // One that has run out on a minority may have gone on.
    if (!hold.expired() || holds.size() >= majority_of(servers.size())) all.push_back(std::move(hold));
  }
  return newest_of(std::move(all), limit);
}

}  // namespace rlock::lock
