// SPDX-License-Identifier: MIT
// The nearest name, for one that no lock has.
#pragma once

#include <string>

#include "base/clock.h"
#include "lock/servers.h"

namespace rlock::cli {

// "; did you mean deploy?" with the nearest name that is known on the server (lock/listing.h). "": none is near, or
// none was found within two exchanges, of `exchange` each, and within 2 s.
std::string near_name(lock::Servers& client, const lock::LockName& name, milliseconds exchange);

}  // namespace rlock::cli
