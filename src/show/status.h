// SPDX-License-Identifier: MIT
// The state of locks as people and Prometheus read it; show/json.h has it for programs. Everything that came from a
// server is escaped here.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lock/history.h"
#include "show/terminal.h"

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

// "alice@ci-7"
std::string user_and_host(const lock::HolderInfo& holder);
// "1st" for one that nobody is ahead of, "2nd" …
std::string place_text(long long ahead);

// For the textfile collector of Prometheus' node_exporter: a line for each lock and measure, under a heading for each
// measure (Prometheus, "Exposition formats"). `last`: the newest hold of each lock that has a history; `totals`: of
// each that has some. Nobody knows whether a lock is held that is not among the states. `servers`: of a quorum, and
// whether they answer.
std::string prometheus_text(const std::vector<lock::Status>& states, const std::vector<lock::PastHold>& last,
                            const std::map<lock::LockName, lock::Totals>& totals,
                            const std::map<std::string, bool>& servers = {});

}  // namespace rlock::cli
