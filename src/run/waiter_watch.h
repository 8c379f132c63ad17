// SPDX-License-Identifier: MIT
// The first waiters for the locks of a job to which they are reported.
#pragma once

#include <mutex>
#include <thread>

#include "lock/servers.h"
#include "redis/subscriber.h"

namespace rlock::run {

// Looks who is first in the queue of each lock as soon as it listens on the channels on which first waiters call
// (lua/10_acquire.lua), and after each call, at most ten times a second, because anybody may call. It has threads and
// connections of its own, so that nothing waits for it. Without the right to listen it finds nobody.
class WaiterWatch {
 public:
  struct Found {
    std::size_t hold;  // its index
    lock::WaiterView waiter;
  };

  // Each exchange has `exchange`. Errors: system. REQUIRES: one address; `holds` outlive this object.
  static Result<std::unique_ptr<WaiterWatch>> start(std::vector<redis::Address> addresses, milliseconds exchange,
                                                    std::span<const lock::Hold> holds);
  ~WaiterWatch();

  // Readable once another waiter has become the first one, until take(), which returns the last one of each lock.
  int fd() const { return news_.get(); }
  std::vector<Found> take();

 private:
  WaiterWatch(std::vector<redis::Address> addresses, milliseconds exchange, std::span<const lock::Hold> holds)
      : servers_(std::move(addresses)),
        exchange_(exchange),
        holds_(holds),
        first_(holds.size()),
        found_(holds.size()) {}
  void look_after_calls();
  void look(std::size_t hold);

  // Of the thread that looks: the first waiter, and since when it waits.
  lock::Servers servers_;
  const milliseconds exchange_;
  std::span<const lock::Hold> holds_;
  std::vector<std::optional<std::pair<lock::HolderInfo, TimePoint>>> first_;

  std::mutex mutex_;
  std::vector<std::optional<lock::WaiterView>> found_;  // of each lock, if it was not taken yet
  UniqueFd calls_, news_, stop_;
  std::unique_ptr<redis::Listener> listening_;
  std::thread looking_;
};

}  // namespace rlock::run
