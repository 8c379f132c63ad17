// SPDX-License-Identifier: MIT
// Locks as Prometheus reads them: a file for the textfile collector of its node_exporter.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lock/history.h"

namespace rlock::cli {

// A line for each lock and measure, under a heading for each measure (Prometheus, "Exposition formats"). `last`: the
// newest hold of each lock that has a history; `totals`: of each that has some. Nobody knows whether a lock is held
// that is not among the states. `servers`: of a quorum, and whether they answer.
std::string prometheus_text(const std::vector<lock::Status>& states, const std::vector<lock::PastHold>& last,
                            const std::map<lock::LockName, lock::Totals>& totals,
                            const std::map<std::string, bool>& servers = {});

}  // namespace rlock::cli
