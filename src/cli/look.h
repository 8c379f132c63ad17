// SPDX-License-Identifier: MIT
// Asks the servers who holds which locks, for `status` and for pages.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "lock/servers.h"

namespace rlock::cli {

struct Question {
  std::vector<lock::LockName> names;  // empty: all locks
  bool strings = false;               // treat strings at these names as locks
  bool if_known = false;              // look up whether the names have ever been used
  milliseconds exchange{};
  bool epochs = false;     // ask for the epochs of the servers, too
  bool deadlocks = false;  // and look at locks around, for jobs that wait for each other
  bool successes = false;  // and for what is remembered of jobs that run once, of named locks
};

// `interrupt`: as in Until. `also`: as in lock::inspect_all. `refused`: gets the number of locks that are left out,
// because the user has no right to them.
Result<std::vector<lock::Status>> look(lock::Servers& servers, const Question& question, int interrupt = -1,
                                       const std::set<lock::LockName>& also = {}, std::size_t* refused = nullptr);

// None for servers of a cluster, and for those that do not answer.
lock::Answers<std::optional<lock::Epoch>> epochs_of(lock::Servers& servers, milliseconds exchange, const Until& until);

// None if they cannot be read, because the state of the lock is worth more.
void add_successes(lock::Status& status, lock::Servers& servers, milliseconds exchange);

// Remarks for lists of locks. The first are about servers of a quorum that have not answered; the second about servers
// that grant no locks yet, because a list may be empty if they have lost their data.
std::vector<std::string> silent_servers(const lock::Servers& servers);
std::vector<std::string> held_back(lock::Servers& servers, milliseconds exchange);
// "unknown who holds 2 locks: …", the locks that look() has left out.
std::string unknown_holders(std::size_t refused);

}  // namespace rlock::cli
