// SPDX-License-Identifier: MIT
// The arithmetic of leases (src/verbs/lease.cc, src/run/watchdog.h) against the proof in docs/proof.md, with its
// own figures.
#pragma once

#include "search.h"

namespace rlock::model {

// Every lease from 1 s to 20 s by the millisecond, then to an hour by the second, with the shortest, the default and
// the longest grace. `states` is their number.
Found check_leases();

// Two renewals of the shortest lease, each sent, executed and answered at any tick, with a server whose clock steps
// between them or does not. `states` is the number of cases.
Found check_watchdog();

}  // namespace rlock::model
