// SPDX-License-Identifier: MIT
#pragma once

#include <set>
#include <string>

#include "base/wait.h"
#include "lock/quorum.h"

namespace rlock::cli {

// Asks those who hold a lock to stop: --supersede.
class Superseding {
 public:
  // `exchange` is for each exchange with the server; `wait`: when and by what the wait ends, and all exchanges with it.
  Superseding(lock::Servers& client, const lock::AcquireRequest& request, milliseconds exchange, const Until& wait)
      : client_(client), name_(request.name), mode_(request.mode), exchange_(exchange), wait_(wait) {}

  // The lock was found held. Asks all that are in the way, again each time: one that has begun just now does not listen
  // yet, and that somebody has heard it may be another holder's doing, who is on the same channel.
  void ask();

 private:
  Until exchange() const { return wait_.at_most(exchange_); }
  std::vector<lock::HolderView> in_the_way(const lock::Status& status) const;
  void ask(const lock::HolderView& holding);

  lock::Servers& client_;
  const lock::LockName& name_;
  lock::Mode mode_;
  milliseconds exchange_;
  Until wait_;
  std::set<std::string> asked_;
};

}  // namespace rlock::cli
