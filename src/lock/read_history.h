// SPDX-License-Identifier: MIT
// The histories of locks, read from one server, from those of a cluster, or from a quorum.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/error.h"
#include "lock/history.h"
#include "lock/servers.h"

namespace rlock::lock {

struct HistoryQuery {
  std::vector<LockName> names;        // none: of all locks that have a history
  std::size_t limit = 50;             // holds at most
  std::optional<milliseconds> since;  // ended at that time or later, since 1970
  std::optional<milliseconds> within = {};  // ended no longer ago, by the clock of the server; overrules `since`
  bool failed = false;                // only those that are not PastHold::fine()
  bool of_each = false;               // the limit is that of each lock, not of all
};

// The newest holds, newest first (lock/join_history.h). Of a stream it reads as much as the limit wants, page by page, so
// that memory follows the limit. A key that is no stream, an entry of another shape, and what stands behind an entry that
// is larger than a reply may be, are passed over with a warning. Each exchange has `exchange`; all together
// kLongestReading times that. Errors: those of redis::Client; of a quorum, where no majority answers; unavailable, where
// it takes too long.
inline constexpr int kLongestReading = 60;
Result<std::vector<PastHold>> read_history(Servers& servers, const HistoryQuery& query, milliseconds exchange);

// The same, one after the other, for those who do not keep them: memory does not follow the limit, but the number of
// locks and the length of their texts, which may be 32 MiB (protocol otherwise); of a quorum it does. Those of all locks
// come in the order in which they were written, which is that in which they ended unless the clock of the server was set
// back. An error may come after some holds. The time that `each` takes does not count. Errors: also those of `each`.
Result<void> each_past_hold(Servers& servers, const HistoryQuery& query, milliseconds exchange,
                            const std::function<Result<void>(const PastHold&)>& each);

// The totals of the named locks, or with no names of all that have some; then those of a lock that
// cannot be read are passed over with a warning. Of a quorum: the largest of all servers.
// Errors: as read_history.
Result<std::map<LockName, Totals>> read_totals(Servers& servers, const std::vector<LockName>& names,
                                               milliseconds exchange);

}  // namespace rlock::lock
