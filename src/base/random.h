// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>

namespace rlock {

// A random UUID, version 4 (RFC 9562 §5.4), from getrandom(2). If a filter refuses that system call, the process ends:
// without random owner ids no promise of rlock holds.
std::string random_uuid();

// A random number from 0 to `limit` - 1. REQUIRES: limit > 0.
std::uint64_t random_below(std::uint64_t limit);

}  // namespace rlock
