// SPDX-License-Identifier: MIT
// Counting the votes of several servers. Pure arithmetic.
//
// Two majorities of the same servers have a server in common, and that one does not grant a lock twice.
#pragma once

#include <cstddef>

namespace rlock::lock {

constexpr std::size_t majority_of(std::size_t voters) { return voters / 2 + 1; }

// The votes on one question. A vote that is neither yes nor no is none: its server was not reached, did not answer in
// time, or may not vote.
struct Ballot {
  std::size_t voters = 0;
  std::size_t yes = 0, no = 0;
  std::size_t none = 0;  // servers that are known to give no vote

  std::size_t majority() const { return majority_of(voters); }
  // Enough have said yes, or no; nothing that is still to come changes that.
  bool carried() const { return yes >= majority(); }
  bool rejected() const { return no >= majority(); }
  // Those that have said neither no nor nothing would do.
  bool may_carry() const { return no + none + majority() <= voters; }
  // Nobody has to be waited for: it is carried, or it cannot be carried any more.
  bool is_settled() const { return carried() || !may_carry(); }
};

}  // namespace rlock::lock
