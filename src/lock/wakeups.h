// SPDX-License-Identifier: MIT
// Hears on several servers that a lock was released, for one who waits without standing in a queue.
#pragma once

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
  void take();

 private:
  void work(const redis::Address& address);
  // False: there is no point in listening again.
  bool listen(const redis::Address& address);

  std::vector<redis::Address> addresses_;
  std::vector<std::string> channels_;
  UniqueFd heard_, stop_;
  std::vector<std::thread> threads_;
};

}  // namespace rlock::lock
