// SPDX-License-Identifier: MIT
#pragma once

namespace rlock::run {

// Closes the descriptors from `first` to `last`, as close_range(2), also where that is missing: in Linux 5.8 and before, and
// behind the filters of some container engines. There, without /proc, those up to 1023. May be called between fork(2) and
// exec(2).
void close_fds(unsigned first, unsigned last = ~0u);

}  // namespace rlock::run
