// SPDX-License-Identifier: MIT
// Who waits for the locks of a job that wants to know.
#pragma once

#include <mutex>

#include "lock/servers.h"
#include "redis/subscriber.h"

namespace rlock::run {

// Looks who is first in the queue of each lock as soon as it listens on the channels on which first waiters call
// (lua/10_acquire.lua), and after each call. It does so in a thread and with connections of its own, so that nothing
// waits for it. Without the right to listen it finds nobody.
class WaiterWatch {
 public:
  struct Found {
    std::size_t hold;  // its index
    lock::WaiterView waiter;
  };

  // Errors: system. REQUIRES: one address; `holds` outlive this object.
  static Result<std::unique_ptr<WaiterWatch>> start(std::vector<redis::Address> addresses,
                                                    std::span<const lock::Hold> holds);
  ~WaiterWatch();

  // Readable once another waiter has become the first one, until take().
  int fd() const { return news_.get(); }
  std::vector<Found> take();

 private:
  WaiterWatch(std::vector<redis::Address> addresses, std::span<const lock::Hold> holds)
      : servers_(std::move(addresses)), holds_(holds), first_(holds.size()) {}
  void look(std::size_t hold);

  // Of the thread.
  lock::Servers servers_;
  std::span<const lock::Hold> holds_;
  std::vector<std::optional<lock::HolderInfo>> first_;

  std::mutex mutex_;
  std::vector<Found> found_;  // not taken yet
  UniqueFd news_, stop_;
  std::unique_ptr<redis::Listener> listening_;
};

}  // namespace rlock::run
