// SPDX-License-Identifier: MIT
// One server that keeps locks by the scripts of lua/, one script a verb, each with the outcomes that its script names.
//
// A string is kept without scripts (lock/without_scripts.h) where the server refuses them: each request tries the
// script first, unless this connection has heard the refusal already.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lock/replies.h"
#include "lock/script.h"
#include "lock/verbs.h"
#include "redis/client.h"

namespace rlock::lock {

class ByScripts final : public Verbs {
 public:
  explicit ByScripts(redis::Client& client) : client_(client) {}

  using Verbs::acquire, Verbs::renew, Verbs::release;
  Result<Acquired> acquire(const AcquireRequest& request, TimePoint sent, const Until& until) override;
  Result<Renewed> renew(const Lock& lock, const OwnerId& owner, milliseconds lease, const Until& until) override;
  Result<Released> release(const ReleaseRequest& request, const Until& until) override;
  Result<Released> force_unlock(const Lock& lock, const OwnerId& owner, const Until& until,
                                const HistoryNote* note) override;
  Result<long long> ask_to_stop(const LockName& name, const OwnerId& owner, const std::string& by,
                                const Until& until) override;
  Result<Status> inspect(const LockName& name, const Until& until, Look look) override;

  // A result for each name, as a plain lock; all are asked for in one exchange.
  std::vector<Result<Status>> inspect_plain(std::span<const LockName> names, const Until& until);

  // For a quorum, which asks each of its servers once in a round, by scripts alone:

  // None: `until` is over, and there was more to do.
  Result<std::optional<Acquired>> vote(const AcquireRequest& request, TimePoint sent, const Until& until) {
    return ask(request, sent, Attempts::one, until);
  }
  // A reply for each, in one exchange.
  Result<std::vector<RenewReply>> renew_once(std::span<const Hold> holds, milliseconds lease, const Until& until);
  // The fencing tokens are those of the holds at least from now on; asked in one exchange. False: one of them is not
  // held. Errors: also wrong_kind, where the key of a token holds none.
  Result<bool> raise(std::span<const Hold> holds, const Until& until);
  // Gives back what was granted to these requests, in one exchange; whatever it was. Errors: that of the first that
  // could not be asked.
  Result<void> give_back(std::span<const AcquireRequest> requests, const Until& until);

 private:
  Result<AllRenewed> renew_all(std::span<const Hold> holds, milliseconds lease, TimePoint sent,
                               const Until& until) override;

  Result<std::optional<Acquired>> ask(const AcquireRequest& request, TimePoint sent, Attempts attempts,
                                      const Until& until);
  Result<Status> look_at(const Lock& lock, const Until& until);
  Result<Status> look_at_any(const LockName& name, const Until& until);
  void explain(const Lock& lock, Error& error, const Until& until);
  Renewed explained(const Lock& lock, const Renewed& renewed, const Until& until);
  void go_on(const Lock& lock, const Until& until);
  std::string follow_master(const Until& until);
  template <class T>
  Result<T> checked(Result<T> read);

  redis::Client& client_;
};

// A server that may drop locks when its memory is full has said so along with its last answer
// (Servers::refuse_eviction). Errors: config, with maybe_executed.
Result<void> expect_no_eviction(const redis::Client& client);

}  // namespace rlock::lock
