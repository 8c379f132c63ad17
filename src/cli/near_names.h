// SPDX-License-Identifier: MIT
// Suggests a name for one that no lock has.
#pragma once

#include <string>

#include "base/clock.h"
#include "lock/servers.h"

namespace rlock::cli {

// "; did you mean deploy?" with the nearest name known to the server (lock/listing.h). Empty if none is near, or none
// is found within two exchanges of `exchange` each and within 2 s.
std::string near_name(lock::Servers& client, const lock::LockName& name, milliseconds exchange);

}  // namespace rlock::cli
