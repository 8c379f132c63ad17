// SPDX-License-Identifier: MIT
// Acquires locks for run and acquire.
#pragma once

#include <vector>

#include "lock/acquire.h"
#include "options/options.h"
#include "show/json.h"

namespace rlock::cli {

struct Acquisition {
  std::vector<lock::AcquireRequest> requests;
  lock::WaitPolicy policy;
  bool supersede = false;        // ask the holders to stop
  bool verbose = false;          // report the wait as on a terminal
  bool reports_refusal = true;   // say why a lock was not acquired
  bool records_refusal = false;  // count it in the totals of the history
};

// `interrupt`: a descriptor that ends the wait when it becomes readable.
Acquisition acquisition_for(const LockingOptions& options, const lock::HolderInfo& holder, milliseconds lease,
                            milliseconds renew_every, int interrupt);

// Acquires all of the locks or none, and reports who holds them while it waits. There are no holds, after a report of
// the reason, if somebody else holds a lock when the wait is over; the caller reports what has already succeeded.
// Errors: those of lock::acquire_all; wrong_kind if a name is in use for something else, or with another number of
// slots; usage for a reader that wants to write, and for options that do not work with several servers; interrupted.
Result<lock::Taken> acquire_and_report(lock::Servers& servers, const Acquisition& acquisition, const Events& events);

}  // namespace rlock::cli
