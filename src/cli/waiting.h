// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/wait.h"
#include "lock/acquire.h"
#include "show/json.h"

namespace rlock::cli {

// One lock while it is waited for: says who has it, and asks them to stop where --supersede wants that.
class AwaitedLock {
 public:
  // The wait begins now. `verbose`: tells of it as on a terminal. REQUIRES: what is referred to outlives this.
  AwaitedLock(lock::Servers& servers, const lock::AcquireRequest& request, const lock::WaitPolicy& policy,
              bool supersede, bool verbose, const Events& events);

  // The lock was found held.
  void look(const lock::Acquired& found);

  // Says who has the lock, and our place in the queue, if a line is due: at the start and each minute, and on a
  // terminal whenever that changes; without a terminal only after a while. Returns when the next line is due.
  TimePoint say_what_is_due();

 private:
  void note(const lock::Acquired& found);
  void ask_to_stop();
  void ask_to_stop(const lock::HolderView& holder);
  std::vector<lock::HolderView> in_the_way(const lock::Status& status) const;
  Until exchange() const { return wait_.at_most(policy_.exchange); }

  lock::Servers& servers_;
  const lock::AcquireRequest& request_;
  const lock::WaitPolicy& policy_;
  bool supersede_, watched_;
  const Events& events_;
  Until wait_;
  std::string meanwhile_;  // the locks that those hold under whom this runs, for people; they stay held
  bool warned_ = false;
  std::optional<std::string> shown_owner_;
  std::optional<long long> shown_ahead_;
  std::optional<lock::Acquired> found_;  // the last time
  TimePoint found_at_{}, say_at_{};
  std::set<std::string> asked_;  // owners that have been asked to stop, or cannot be
};

}  // namespace rlock::cli
