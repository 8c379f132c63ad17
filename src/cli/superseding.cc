// SPDX-License-Identifier: MIT
#include "cli/superseding.h"

#include <algorithm>
#include <tuple>

#include "base/log.h"
#include "show/status.h"
#include "cli/self.h"

namespace rlock::cli {

// Other readers are not in the way of a reader. Of those who have a slot, the one is that has had it for the longest
// time, of all that can be asked.
std::vector<lock::HolderView> Superseding::in_the_way(const lock::Status& status) const {
  std::vector<lock::HolderView> holders = status.holders;
  if (mode_.kind == lock::Mode::Kind::read) {
    std::erase_if(holders, [](const lock::HolderView& holding) { return holding.mode == "read"; });
  }
  if (status.lock.layout != lock::Layout::semaphore) return holders;
  const auto rank = [&](const lock::HolderView& one) {
    return std::tuple(one.who.listens && asked_.contains(one.owner), one.who.listens, one.held_for);
  };
  return {std::ranges::max(holders, {}, rank)};
}

void Superseding::ask() {
  const auto status = lock::inspect(client_, name_, exchange(), lock::Views::majority);
  if (!status || status->state != lock::Status::State::held) return;
  for (const lock::HolderView& holding : in_the_way(*status)) ask(holding);
}

void Superseding::ask(const lock::HolderView& holding) {
  if (!holding.who.listens) {
    if (!asked_.insert(holding.owner).second) return;
    log::warning(name_.display() + ": " + held_by(holding) + ": it cannot be asked to stop; waiting until it releases");
    return;
  }
  const auto heard =
      lock::ask_to_stop(client_, name_, lock::OwnerId::as_stored(holding.owner), asker("--supersede"), exchange());
  if (!heard || *heard == 0 || !asked_.insert(holding.owner).second) return;
  log::info(name_.display() + ": the holder has been asked to stop");
}

}  // namespace rlock::cli
