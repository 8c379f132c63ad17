// SPDX-License-Identifier: MIT
// What is searched: the clients, and the bounds.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "verbs/mode.h"

namespace rlock::model {

struct Role {
  lock::Mode mode;
  bool waits = true;      // in the queue; otherwise it asks once
  bool java = false;      // a Redisson client
  bool replaces = false;  // it takes the place of the last waiter that did so
  int priority = 0;
  milliseconds aging{};  // after which it gains one
  bool is_new = false;   // the server has not yet granted a lease of this length when the search begins
  milliseconds lease{};  // 0: that of the configuration
  bool once = false;     // its command is to succeed only once, together with those of all others with this
};

struct Configuration {
  std::string name;
  std::vector<Role> clients;
  int ticks = 5;           // how often time advances
  int attempts = 1;        // of each client
  int faults = 2;          // in one run
  int losses = 0;          // how often the server loses what it knew
  bool copies = false;     // it may get back what it knew at some moment; otherwise it forgets everything
  bool guarded = false;    // the script refuses newcomers on a server whose data is new
  bool sentinels = false;  // and are told since when no replication has replaced the data
  // A violation is expected, and the run fails without one: it shows that the search can find it.
  const char* expected = nullptr;

  milliseconds lease{10'000};
  milliseconds tick{5'001};
};

inline milliseconds lease_of(const Configuration& configuration, int client) {
  const milliseconds own = configuration.clients[static_cast<std::size_t>(client)].lease;
  return own > 0ms ? own : configuration.lease;
}

const std::vector<Configuration>& configurations();

}  // namespace rlock::model
