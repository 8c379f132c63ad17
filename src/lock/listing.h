// SPDX-License-Identifier: MIT
// Lists of locks that nobody has named: found by SCAN, with an end and a limit of memory, because a server can send names
// without end.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string_view>

#include "base/error.h"
#include "lock/name.h"
#include "redis/client.h"

namespace rlock::lock {

// The names of the locks that have a companion key with that word, on all servers of a cluster. Looks at every key of the
// database, for `exchange` at most at a time. `each`: bytes that the caller is going to keep of a lock besides its name,
// about. Errors: those of redis::Client and of within_list_limits.
Result<std::set<LockName>> names_with(redis::Client& client, std::string_view word, std::size_t each,
                                      milliseconds exchange, const Until& end);
// The same for those with one of the words, in one look at the keys.
Result<std::set<LockName>> names_with(redis::Client& client, std::span<const std::string_view> words, std::size_t each,
                                      milliseconds exchange, const Until& end);

// Ends a listing that would not end by itself. Errors: protocol where `size` bytes are more than 32 MiB, unavailable
// where `end` is over.
Result<void> within_list_limits(std::size_t size, const Until& end);

// SCAN finds keys that a user has no right to: those of another team.
bool is_of_others(const Error& error);

}  // namespace rlock::lock
