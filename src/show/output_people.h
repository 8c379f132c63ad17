// SPDX-License-Identifier: MIT
// Results and states as people read them. Everything that came from a server is escaped here.
#pragma once

#include <string>
#include <vector>

#include "show/table.h"
#include "lock/verbs.h"

namespace rlock::cli {

// Where a list of all locks has none.
inline constexpr const char* kNoLocks =
    "no locks are held through rlock; those of other programs are shown by their names: rlock status NAME\n";

// One lock in full. `near`: "", or what a name that is not known may have meant, as suggestion() says it.
std::string status_in_full(const lock::Status& status, const Screen& screen = {}, const std::string& near = "");
// Several locks, a line each under a heading.
std::string status_table(const std::vector<lock::Status>& all, const Screen& screen = {});

// "held by alice@ci-7 pid 4242 for 3m12s (./deploy.sh), reason 'release 1.4'", or by an owner id where no more is
// known, "and 2 others".
// ", not renewed for 7s" with it, where that is overdue.
std::string held_by(const lock::HolderView& holding, long long holders = 1);
// One of the holders has not renewed its lease in time.
bool is_overdue(const lock::Status& status);
// The same of a lock that is found held: "held by another" where nobody is known.
std::string held_by(const lock::Acquired& found);
std::string held_by(const lock::Status& status);

// "1st" for one that nobody is ahead of, "2nd" …
std::string place_text(long long ahead);

}  // namespace rlock::cli
