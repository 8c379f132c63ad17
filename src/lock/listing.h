// SPDX-License-Identifier: MIT
// Lists locks that SCAN finds, with limits on time and memory because a server can send names forever; and tells names
// that were used before from mistyped ones.
#pragma once

#include "lock/servers.h"
#include "redis/client.h"

namespace rlock::lock {

// The names of the locks that have a companion key with one of the words, on all servers of a cluster. Looks at every
// key of the database; each exchange has `exchange`. `each`: about how many bytes the caller is going to keep for a
// lock besides its name. Errors: those of redis::Client and of within_list_limits.
Result<std::set<LockName>> names_with(redis::Client& client, std::span<const std::string_view> words, std::size_t each,
                                      milliseconds exchange, const Until& end);

// All locks that are held and were taken with rlock or have waiters, and those of `also` in any state. Looks at every
// key of the database (SCAN), so it is not for a hot path. Each exchange has `exchange`, and all together sixty times
// that. Errors: also unavailable or protocol if the list does not end within that time or 32 MiB.
Result<Listing> inspect_all(Servers& servers, milliseconds exchange, const Until& until = {},
                            const std::set<LockName>& also = {});
// The same for one server.
Result<Listing> inspect_one_server(redis::Client& client, milliseconds exchange, const Until& until = {},
                                   const std::set<LockName>& also = {});

// False: the lock of that status is free, has no waiters, and no fencing token, queue, history or other key has its
// name. Takes one exchange, unless the status shows one of these. True if the server does not say.
bool is_known(Servers& servers, const Status& status, const Until& until);

// The names with keys of rlock, or a fencing token, on the server, or on the first one of a quorum. Looks at every key.
// Errors: those of names_with.
Result<std::set<LockName>> known_names(Servers& servers, milliseconds exchange, const Until& end);

// Stops a listing that would never end. Errors: protocol if `size` exceeds 32 MiB, unavailable if `end` is over.
Result<void> within_list_limits(std::size_t size, const Until& end);

// The user has no right to the key: SCAN also finds keys of other teams.
bool is_of_others(const Error& error);

}  // namespace rlock::lock
