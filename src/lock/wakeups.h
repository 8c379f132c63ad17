// SPDX-License-Identifier: MIT
// Hears on several servers that a lock was released, for one who waits without standing in a queue.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "lock/mode.h"
#include "redis/address.h"

namespace rlock::lock {

class Wakeups {
 public:
  // Listens on the channels of `locks` on each server, a thread each, until it is destroyed. A server that cannot be
  // listened to is tried again each second; one that refuses is not.
  Wakeups(std::vector<redis::Address> addresses, const std::vector<Lock>& locks);
  Wakeups(const Wakeups&) = delete;
  Wakeups& operator=(const Wakeups&) = delete;
  ~Wakeups();

  // Readable when something was heard, until take().
  int fd() const { return heard_.get(); }
  // Where it was heard, by the index of the server.
  std::vector<bool> take();

 private:
  void work(std::size_t which);
  // False: there is no point in listening again.
  bool listen(std::size_t which);

  std::vector<redis::Address> addresses_;
  std::vector<std::string> channels_;
  UniqueFd heard_, stop_;
  std::vector<std::atomic<bool>> news_;  // a server each
  std::vector<std::thread> threads_;
};

}  // namespace rlock::lock
