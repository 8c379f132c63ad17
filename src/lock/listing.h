// SPDX-License-Identifier: MIT
// Looks at locks: lists of those that nobody has named, found by SCAN, with an end and a limit of memory, because a
// server can send names without end; and names that somebody has used, as against those that were mistyped.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "lock/servers.h"
#include "redis/client.h"

namespace rlock::lock {

// The names of the locks that have a companion key with that word, on all servers of a cluster. Looks at every key of
// the database, for `exchange` at most at a time. `each`: bytes that the caller is going to keep of a lock besides its
// name, about. Errors: those of redis::Client and of within_list_limits.
Result<std::set<LockName>> names_with(redis::Client& client, std::string_view word, std::size_t each,
                                      milliseconds exchange, const Until& end);
// The same for those with one of the words, in one look at the keys.
Result<std::set<LockName>> names_with(redis::Client& client, std::span<const std::string_view> words, std::size_t each,
                                      milliseconds exchange, const Until& end);

// All locks that are held, and were taken with rlock or have a queue; and those of `also`, whatever their state, unless
// the user has no right to them. Sorted by name. Looks at every key of the database (SCAN), for `exchange` at most at a
// time, and for sixty times that at most altogether: not for a hot path.
// Errors: also unavailable, protocol, where the list does not end within that time or within 32 MiB.
Result<std::vector<Status>> inspect_all(Servers& servers, milliseconds exchange, const Until& until = {},
                                        const std::set<LockName>& also = {});
// The same of one server.
Result<std::vector<Status>> inspect_one_server(redis::Client& client, milliseconds exchange, const Until& until = {},
                                               const std::set<LockName>& also = {});

// False: the lock of that status is free, and there is no fencing token, queue, history or other key of that name, nor
// anybody who waits for it. Costs nothing where the status shows one of these, else one exchange. True where the server
// does not say.
bool is_known(Servers& servers, const Status& status, const Until& until);

// The names that have keys of rlock, or a fencing token, on the server; of a quorum on the first one. Looks at every
// key. Errors: those of names_with.
Result<std::set<LockName>> known_names(Servers& servers, milliseconds exchange, const Until& end);

// Ends a listing that would not end by itself. Errors: protocol where `size` bytes are more than 32 MiB, unavailable
// where `end` is over.
Result<void> within_list_limits(std::size_t size, const Until& end);

// SCAN finds keys that a user has no right to: those of another team.
bool is_of_others(const Error& error);

}  // namespace rlock::lock
