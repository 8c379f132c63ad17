// SPDX-License-Identifier: MIT
// Acquiring locks as run and acquire both do it.
#pragma once

#include <vector>

#include "lock/acquire.h"
#include "options/options.h"
#include "show/json.h"

namespace rlock::cli {

// What is to be acquired, how it is waited for, and what is said of that.
struct Acquisition {
  std::vector<lock::AcquireRequest> requests;
  lock::WaitPolicy policy;
  bool supersede = false;       // the holders are asked to stop
  bool verbose = false;         // the wait is told of as on a terminal
  bool tells_refusal = true;    // it is said why a lock was not acquired
  bool counts_refusal = false;  // and written down for the history
};

// As the options have it. `interrupt`: a descriptor that ends the wait when it becomes readable.
Acquisition acquisition_for(const LockingOptions& options, const lock::HolderInfo& holder, milliseconds lease,
                            milliseconds renew_every, int interrupt);

// Acquires the locks, all or none, or waits for them, with lines about who holds them. Empty: one of them is held by
// somebody else and the wait is over; that has been said. Errors: those of lock::acquire_all; wrong_kind if a name is
// in use for something else, or with another number of slots; usage for a reader that wants to become a writer, and for
// what there is not with several servers; interrupted.
Result<std::vector<lock::Hold>> acquire_and_report(lock::Servers& servers, const Acquisition& acquisition,
                                                   const Events& events);

}  // namespace rlock::cli
