// SPDX-License-Identifier: MIT
// The histories of locks, for those who do not keep what they read.
#pragma once

#include <functional>

#include "base/error.h"
#include "lock/history.h"
#include "lock/history_query.h"
#include "lock/servers.h"

namespace rlock::lock {

// As read_history, one hold after the other: memory does not follow the limit, but the number of locks and the length of
// their texts, which may be 32 MiB; of a quorum it does. Those of all locks come in the order in which they were written,
// which is that in which they ended unless the clock of the server was set back. An error may come after some holds. The
// time that `each` takes does not count. Errors: those of read_history and of `each`; protocol for longer texts.
Result<void> each_past_hold(Servers& servers, const HistoryQuery& query, milliseconds exchange,
                            const std::function<Result<void>(const PastHold&)>& each);

}  // namespace rlock::lock
