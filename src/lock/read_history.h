// SPDX-License-Identifier: MIT
// Reads the histories of locks from one server, from a cluster, or from a quorum.
//
// Reads only as much of a stream as the limit needs, page by page. Skips, with a warning, keys that are not streams,
// malformed entries, and what follows an entry that is too large for a reply. Each exchange has `exchange`, and all
// together sixty times that. Errors of all: those of redis::Client; of a quorum, if no majority answers; unavailable if
// it takes too long; protocol if more than 32 MiB would have to be kept.
#pragma once

#include "lock/history.h"
#include "lock/servers.h"

namespace rlock::lock {

// Calls `each` with one hold after another, in the order in which they were written, which is that in which they ended,
// newest first, unless the server's clock was set back. Memory depends on the number of locks and the length of their
// texts, but not on the limit, except for a quorum. An error may come after some holds. The time that `each` takes does
// not count. Errors: also those of `each`.
Result<void> each_past_hold(Servers& servers, const HistoryQuery& query, milliseconds exchange,
                            const std::function<Result<void>(const PastHold&)>& each);

// All of them, sorted by when they ended.
Result<std::vector<PastHold>> read_history(Servers& servers, const HistoryQuery& query, milliseconds exchange);

// The newest ones, no more than the limit of the query.
struct NewestHolds {
  std::vector<PastHold> holds;  // sorted as above
  bool older = false;           // there are older ones
};
Result<NewestHolds> read_newest(Servers& servers, HistoryQuery query, milliseconds exchange);

// The totals of the named locks, or if there are no names, of all locks that have some; locks that cannot be read are
// then skipped with a warning. Of a quorum, the largest of all servers.
Result<std::map<LockName, Totals>> read_totals(Servers& servers, const std::vector<LockName>& names,
                                               milliseconds exchange);

}  // namespace rlock::lock
