// SPDX-License-Identifier: MIT
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "show/json.h"
#include "lock/verbs.h"

namespace rlock::cli {

// Says for whom a lock is waited, and as the how-manieth: at the start and each minute, and on a terminal whenever it
// changes; without a terminal only once it has lasted for a while.
class WaitReport {
 public:
  // `meanwhile`: the names of locks that those hold under whom this runs, for people; "": none. They stay held while this
  // waits.
  WaitReport(const lock::LockName& name, bool verbose, const Events& events, std::string meanwhile)
      : name_(name), verbose_(verbose), events_(events), meanwhile_(std::move(meanwhile)) {}

  // The lock was found held.
  void note(const lock::Acquired& found);

  // Returns when the next line is due.
  TimePoint say_what_is_due();

 private:
  bool watched() const;

  const lock::LockName& name_;
  bool verbose_;
  const Events& events_;
  std::string meanwhile_;
  std::optional<std::string> shown_owner_;
  std::optional<long long> shown_ahead_;
  std::optional<lock::Acquired> found_;  // the last time
  TimePoint found_at_{}, say_at_{};
};

}  // namespace rlock::cli
