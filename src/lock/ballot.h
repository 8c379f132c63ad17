// SPDX-License-Identifier: MIT
// Counting the votes of several servers. Pure arithmetic.
//
// Two majorities of the same servers have a server in common, which does not grant a lock twice.
#pragma once

#include <cstddef>

namespace rlock::lock {

constexpr std::size_t majority_of(std::size_t voters) { return voters / 2 + 1; }

// The votes on one question. A server that was not reached, did not answer in time, or may not vote gives no vote.
struct Ballot {
  std::size_t voters = 0;
  std::size_t yes = 0, no = 0;
  std::size_t none = 0;  // servers that are known to give no vote

  // Enough have said yes, or no; further votes cannot change that.
  bool carried() const { return yes >= majority_of(voters); }
  bool rejected() const { return no >= majority_of(voters); }
  // The servers that may still say yes would be enough.
  bool may_carry() const { return no + none + majority_of(voters) <= voters; }
  // It is carried, or can no longer be.
  bool is_settled() const { return carried() || !may_carry(); }
};

}  // namespace rlock::lock
