// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "base/clock.h"

namespace rlock {

// "2026-01-31T12:00:00Z": ISO 8601, UTC. "?" for what no calendar holds.
std::string date_text(milliseconds since_1970);

// The wall clock, which may step: for people and logs only.
milliseconds since_1970();

}  // namespace rlock
