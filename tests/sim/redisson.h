// SPDX-License-Identifier: MIT
// A client of Redisson's RLock, by its contract: the scripts that it sends, a lease of 30 s that it renews every 10 s,
// and a wait for a message or the end of the lease. It does not know how long it may rely on its lock: its command
// counts as one until the lease ends that it got last.
#pragma once

#include "checker.h"
#include "network.h"
#include "redis/connection.h"

namespace rlock::sim {

class Redisson {
 public:
  Redisson(Process& process, const std::string& name, const std::string& url, Checker& checker);

  // The life of its thread: one hold after the other until that time.
  void run_until(Time then);

 private:
  // A call of a script: its reply; none: it failed, or was not answered in time.
  std::optional<redis::Reply> call(const char* script);
  bool connect();
  // Returns whether it has the lock.
  bool acquire(Time until);
  void hold(Time until);
  void look_at_lease();
  void end();

  Process& process_;
  std::string name_, channel_, owner_;
  redis::Endpoint server_;
  Checker& checker_;
  std::optional<redis::Connection> commands_, messages_;
  int attempts_ = 0;
  bool runs_ = false;
  Time valid_until_ = 0;
};

}  // namespace rlock::sim
