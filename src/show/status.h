// SPDX-License-Identifier: MIT
// The state of locks for people and Prometheus; show/json.h has it for programs. These functions escape everything that
// came from a server.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lock/history.h"
#include "show/terminal.h"

namespace rlock::cli {

// Shown instead of an empty list of all locks.
inline constexpr const char* kNoLocks =
    "no locks are held through rlock; to see a lock of another program, name it: rlock status NAME\n";

// One lock in full. `near`: empty, or the result of suggestion() for an unknown name.
std::string status_in_full(const lock::Status& status, const Screen& screen = {}, const std::string& near = "");
// A heading, and a line for each lock.
std::string status_table(const std::vector<lock::Status>& all, const Screen& screen = {});

// "held by alice@ci-7 pid 4242 for 3m12s (./deploy.sh), reason 'release 1.4', not renewed for 7s and 2 others". Shows
// the owner id of holders that rlock does not know.
std::string held_by(const lock::HolderView& holding, long long holders = 1);
std::string held_by(const lock::Acquired& found);
std::string held_by(const lock::Status& status);
// True if a holder has not renewed its lease in time.
bool is_overdue(const lock::Status& status);

// "alice@ci-7"
std::string user_and_host(const lock::HolderInfo& holder);
// "1st" for 0, "2nd" for 1 …
std::string place_text(long long ahead);

// Metrics for the textfile collector of node_exporter (Prometheus, "Exposition formats"). `last`: the newest hold of
// each lock with a history. `servers`: the servers of a quorum, and whether they answer. For locks that are not in
// `states`, it is unknown whether they are held.
std::string prometheus_text(const std::vector<lock::Status>& states, const std::vector<lock::PastHold>& last,
                            const std::map<lock::LockName, lock::Totals>& totals,
                            const std::map<std::string, bool>& servers = {});

}  // namespace rlock::cli
