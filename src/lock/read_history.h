// SPDX-License-Identifier: MIT
// The histories of locks, read from one server, from those of a cluster, or from a quorum.
#pragma once

#include <map>
#include <vector>

#include "base/error.h"
#include "lock/history.h"
#include "lock/history_query.h"
#include "lock/servers.h"

namespace rlock::lock {

// The newest holds, newest first (lock/join_history.h). Of a stream it reads as much as the limit wants, page by page, so
// that memory follows the limit. A key that is no stream, an entry of another shape, and what stands behind an entry that
// is larger than a reply may be, are passed over with a warning. Each exchange has `exchange`; all together
// kLongestReading times that. Errors: those of redis::Client; of a quorum, where no majority answers; unavailable, where
// it takes too long.
Result<std::vector<PastHold>> read_history(Servers& servers, const HistoryQuery& query, milliseconds exchange);

// The totals of the named locks, or with no names of all that have some; then those of a lock that
// cannot be read are passed over with a warning. Of a quorum: the largest of all servers.
// Errors: as read_history.
Result<std::map<LockName, Totals>> read_totals(Servers& servers, const std::vector<LockName>& names,
                                               milliseconds exchange);

// Whether a job has asked for a history of one of these locks lately, or with no names of any: one that holds its lock, or
// that has not got it, has no entry. Errors: as read_history.
Result<bool> history_is_wanted(Servers& servers, const std::vector<LockName>& names, milliseconds exchange);

}  // namespace rlock::lock
