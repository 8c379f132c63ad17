// SPDX-License-Identifier: MIT
// Taking several locks: all of them or none.
#pragma once

#include <functional>
#include <vector>

#include "lock/wait.h"

namespace rlock::lock {

struct Taken {
  std::vector<Hold> holds;  // of all requests, in their order; empty if one was not granted
  std::size_t refused = 0;  // the index of that one
  Acquired refusal;         // and why
};

// Takes the locks one after another, and waits where one is held, keeping those before it renewed, every
// WaitPolicy::renew_every. All share one time limit. If one is not granted, or the call ends in an error, those that
// were are released.
//
// Programs that take locks in one order never wait in a circle with others who do (Havender 1968, "Avoiding deadlock in
// multitasking systems"): the requests are to be in the order of their names.
//
// `on_held` is called as by acquire_or_wait, with the index of the request. If one is lost while another is
// waited for, all are given back, and it begins again; if somebody asks for it (see ask_to_stop), it is over. Errors:
// those of acquire_or_wait. Owner ids, and the ids of holds beside an ancestor's, are made here. REQUIRES: sorted by
// name, no name twice, one lease for all.
Result<Taken> acquire_all(redis::Client& client, const std::vector<AcquireRequest>& requests, const WaitPolicy& policy,
                          const std::function<void(std::size_t, const Acquired&)>& on_held);

}  // namespace rlock::lock
