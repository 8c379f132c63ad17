// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace rlock {

// A random UUID, version 4 (RFC 9562 §5.4), from getrandom(2), which cannot fail once the machine has booted.
std::string random_uuid();

// A random number from 0 to `limit` - 1. REQUIRES: limit > 0.
std::uint64_t random_below(std::uint64_t limit);

}  // namespace rlock
