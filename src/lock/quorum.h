// SPDX-License-Identifier: MIT
// The verbs on a lock that one server keeps, or a quorum of independent ones (Redlock; Redis documentation,
// "Distributed Locks with Redis"). With one server each is the verb of lock/verbs.h, and costs no more.
//
// With a quorum each server is asked by the same script, all at once, and a majority decides. The outcomes are those of
// the majority; errors: those of a majority where they are of one kind, else unavailable. A server that hangs holds
// nobody up for longer than its limit (vote_limit), and less once a majority has answered.
#pragma once

#include <set>

#include "lock/acquire_all.h"
#include "lock/servers.h"
#include "lock/verbs.h"

namespace rlock::lock {

// As acquire_all of lock/acquire_all.h.
//
// With a quorum all names are asked for, one after another. If a majority does not grant one of them within the
// validity of the first, all are given back at once, on all servers, also on those that have not answered; a random
// pause follows, and another attempt under another owner id. A waiter stands in no queue, and holds nothing while it
// waits: it hears of releases on each server. The servers are checked to be independent of each other. Errors: also
// config, where they are not.
Result<Taken> acquire_all(Servers& servers, const std::vector<AcquireRequest>& requests, const WaitPolicy& policy,
                          const std::function<void(std::size_t, const Acquired&)>& on_held);

// With a quorum also puts a hold that a server has lost, or never had, there, while a majority keeps it. lacks_hold() of
// the servers says whether one still lacks it, because another has its vote: that one is to be asked again soon. This
// part is not ended by until.interrupt, and takes half a second at most. REQUIRES: no release of one of these holds has
// begun.
Result<AllRenewed> renew_all(Servers& servers, std::span<const Hold> holds, milliseconds lease, const Until& until);
// For holds that nobody renews: puts them on each server that may vote, by rounds as above, as long as one lacks them,
// and for a second at most. REQUIRES: as above.
void complete(Servers& servers, std::span<const Hold> holds);
// The same for an owner of which no more is known; see put_back_where_lost() in lock/put_back.h.
Result<Renewed> renew(Servers& servers, const Lock& lock, const OwnerId& owner, milliseconds lease, Attempts attempts,
                      const Until& until);

// For lasted(): the token is the last one that a majority agrees on.
Result<Released> release(Servers& servers, const Lock& lock, const OwnerId& owner, const std::string& hold_id,
                         const Until& until, milliseconds keep = {}, const HistoryNote* note = nullptr);
Result<Released> release(Servers& servers, const Hold& hold, const Until& until, milliseconds keep = {},
                         const HistoryNote* note = nullptr);

Result<long long> ask_to_stop(Servers& servers, const LockName& name, const OwnerId& owner, const std::string& by,
                              const Until& until);
Result<Released> force_unlock(Servers& servers, const Lock& lock, const OwnerId& owner, const Until& until,
                              const HistoryNote* note = nullptr);

// With a quorum also what each server says. `views`: whether each server is waited for, or a majority is enough.
enum class Views { all, majority };
Result<Status> inspect(Servers& servers, const LockName& name, const Until& until, Views views = Views::all);
Result<Status> inspect_string(Servers& servers, const LockName& name, const Until& until);
Result<std::vector<Status>> inspect_all(Servers& servers, milliseconds exchange, const Until& until = {},
                                        const std::set<LockName>& also = {});

}  // namespace rlock::lock
