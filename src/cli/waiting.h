// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <set>
#include <string>

#include "base/wait.h"
#include "lock/acquire.h"
#include "show/json.h"

namespace rlock::cli {

// A lock that we wait for: reports who holds it, and asks the holders to stop with --supersede.
class AwaitedLock {
 public:
  // The wait begins now. `verbose`: report as on a terminal. REQUIRES: the arguments outlive this object.
  AwaitedLock(lock::Servers& servers, const lock::AcquireRequest& request, const lock::WaitPolicy& policy,
              bool supersede, bool verbose, const Events& events);

  // Must be called whenever the lock was found held.
  void look(const lock::Acquired& found);

  // Reports the holder and our place in the queue if that is due: on a terminal at the start, every minute and after
  // changes; otherwise after two seconds and then every minute. Returns when the next report is due.
  TimePoint say_what_is_due();

 private:
  void note(const lock::Acquired& found);
  std::optional<lock::Forecast> forecast_of(const lock::Acquired& found) const;
  void ask_to_stop();
  void ask_to_stop(const lock::HolderView& holder);
  std::vector<lock::HolderView> in_the_way(const lock::Status& status) const;
  Until exchange() const { return wait_.at_most(policy_.exchange); }

  lock::Servers& servers_;
  const lock::AcquireRequest& request_;
  const lock::WaitPolicy& policy_;
  bool supersede_, verbose_, watched_;
  const Events& events_;
  Until wait_;
  std::string meanwhile_;   // other locks that this process runs under, for messages
  bool held_back_ = false;  // by the epoch guard, when it last looked
  bool warned_ = false;
  std::optional<std::string> shown_owner_;
  std::optional<long long> shown_ahead_;
  std::optional<lock::Acquired> found_;  // most recently
  TimePoint found_at_{}, say_at_{};
  std::set<std::string> asked_;  // owners that were asked to stop, or cannot be asked
};

}  // namespace rlock::cli
