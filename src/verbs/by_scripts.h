// SPDX-License-Identifier: MIT
// One server that keeps locks by the scripts of lua/, one for each verb; each names its outcomes.
//
// If the server refuses scripts, string locks are kept without them (verbs/without_scripts.h): each request tries its
// script first, unless the server has already refused one on this connection.
#pragma once

#include "redis/client.h"
#include "verbs/epoch.h"
#include "verbs/replies.h"
#include "verbs/script.h"
#include "verbs/verbs.h"

namespace rlock::lock {

class ByScripts final : public Verbs {
 public:
  explicit ByScripts(redis::Client& client, Guard guard = Guard::off) : client_(client), guard_(guard) {}

  using Verbs::acquire, Verbs::renew, Verbs::release;
  Result<Acquired> acquire(const AcquireRequest& request, TimePoint sent, const Until& until) override;
  Result<Renewed> renew(const Lock& lock, const OwnerId& owner, milliseconds lease, const Until& until) override;
  Result<Released> release(const ReleaseRequest& request, const Until& until) override;
  Result<Released> force_unlock(const Lock& lock, const OwnerId& owner, const Until& until,
                                const HistoryNote* note) override;
  Result<long long> ask_to_stop(const LockName& name, const OwnerId& owner, const std::string& by,
                                const Until& until) override {
    return publish_request_to_stop(client_, name, owner, by, until);
  }
  Result<Status> inspect(const LockName& name, const Until& until, Look look) override;

  // Looks at each name as a plain lock, all in one exchange.
  std::vector<Result<Status>> inspect_plain(std::span<const LockName> names, const Until& until);

  // For a quorum, which asks each of its servers once in a round, and only by scripts:

  // None: `until` is over before everything was done.
  Result<std::optional<Acquired>> vote(const AcquireRequest& request, TimePoint sent, const Until& until) {
    return ask(request, sent, Attempts::one, guard_, until);
  }
  // The same for a hold that a majority keeps, without the guard: as long as they do, no grant that this server may
  // have forgotten has a majority.
  Result<std::optional<Acquired>> put_back(AcquireRequest request, TimePoint sent, const Until& until) {
    request.once.reset();  // a minority's success does not count
    return ask(request, sent, Attempts::one, Guard::off, until);
  }
  // A reply for each, in one exchange.
  Result<std::vector<RenewReply>> renew_once(std::span<const Hold> holds, milliseconds lease, const Until& until);
  // Raises the fencing tokens to at least those of the holds, in one exchange. False: one of them is not held. Errors:
  // also wrong_kind if the key of a token contains something else.
  Result<bool> raise(std::span<const Hold> holds, const Until& until);
  // Gives back anything that was granted to these requests, in one exchange. Errors: that of the first that failed.
  Result<void> give_back(std::span<const AcquireRequest> requests, const Until& until);

 private:
  Result<AllRenewed> renew_all(std::span<const Hold> holds, milliseconds lease, TimePoint sent,
                               const Until& until) override;

  Result<std::optional<Acquired>> ask(const AcquireRequest& request, TimePoint sent, Attempts attempts, Guard guard,
                                      const Until& until);
  Result<Status> look_at(const Lock& lock, const Until& until);
  Result<Status> look_at_any(const LockName& name, const Until& until);
  void warn_of_no_guard();
  void explain(const LockName& name, Error& error, const Until& until);
  Renewed explained(const Lock& lock, const Renewed& renewed, const Until& until);
  void go_on(const Lock& lock, const Until& until);
  Result<Released> release_by(const Call& call, const ReleaseRequest& request, const Until& until);
  std::string follow_master(const Until& until);
  template <class T>
  Result<T> checked(Result<T> read);

  redis::Client& client_;
  Guard guard_;
  bool warned_ = false;  // that there is no guard without scripts
};

// Errors (config, with maybe_executed): the server's last answer said that it may drop locks when its memory is full
// (Servers::refuse_eviction).
Result<void> expect_no_eviction(const redis::Client& client);

}  // namespace rlock::lock
