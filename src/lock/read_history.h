// SPDX-License-Identifier: MIT
// The histories of locks, read from one server, from those of a cluster, or from a quorum.
//
// Of a stream only as much is read as the limit wants, page by page. A key that is no stream, an entry of another
// shape, and what stands behind an entry that is larger than a reply may be, are passed over with a warning. Each
// exchange has `exchange`; all together sixty times that. Errors of all: those of redis::Client; of a quorum, where no
// majority answers; unavailable, where it takes too long; protocol, where more than 32 MiB would have to be kept.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "base/error.h"
#include "lock/history.h"
#include "lock/servers.h"

namespace rlock::lock {

// One hold after the other, in the order in which they were written: that is the order in which they ended, the newest
// first, unless the clock of the server was set back. Memory follows the number of locks and the length of their texts,
// not the limit; of a quorum it follows that, too. An error may come after some holds. The time that `each` takes does
// not count. Errors: also those of `each`.
Result<void> each_past_hold(Servers& servers, const HistoryQuery& query, milliseconds exchange,
                            const std::function<Result<void>(const PastHold&)>& each);

// All of them, by when they ended.
Result<std::vector<PastHold>> read_history(Servers& servers, const HistoryQuery& query, milliseconds exchange);

// The totals of the named locks, or with no names of all that have some; then those of a lock that
// cannot be read are passed over with a warning. Of a quorum: the largest of all servers.
Result<std::map<LockName, Totals>> read_totals(Servers& servers, const std::vector<LockName>& names,
                                               milliseconds exchange);

// Whether a job has asked for a history of one of these locks lately, or with no names of any: one that holds its lock,
// or that has not got it, has no entry.
Result<bool> history_is_wanted(Servers& servers, const std::vector<LockName>& names, milliseconds exchange);

}  // namespace rlock::lock
