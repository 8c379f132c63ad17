// SPDX-License-Identifier: MIT
// The verbs on locks: one interface with two implementations. One server keeps a lock by the script of lua/, which has
// all verbs (ByScripts); several servers keep it as a quorum (lock/quorum.h). Servers (lock/servers.h) chooses by the
// addresses.
//
// For both:
// - A lease counts from *s*, the time just before rlock sent the request that granted or renewed it. If the request was
//   sent again, to any server, the first time counts (docs/proof.md, The timing proof). Of several holds: the oldest.
// - Every verb can be sent twice without harm, and is sent again if a reply is lost, except for the renewal of holds.
//   After an error with maybe_executed, it may have taken effect.
// - Errors: those of redis::Client; protocol with maybe_executed if a reply is malformed.
#pragma once

#include "redis/client.h"
#include "redis/subscriber.h"
#include "verbs/epoch.h"
#include "verbs/script.h"

namespace rlock::lock {

// The names of their locks, for messages: "a", "a, b".
std::string display(std::span<const Hold> holds);
// The earliest `sent`. REQUIRES: at least one hold.
TimePoint oldest(std::span<const Hold> holds);

// The result of renewing several holds. If one was not renewed, this is its result, and `at` its index. If all were,
// `found` is what was left of the shortest lease.
struct AllRenewed : Renewed {
  std::size_t at = 0;
  TimePoint sent{};  // just before the first request: deadlines count from here
};

// How to look at a lock.
struct Look {
  bool as_string = false;          // the caller knows that a string at this key is a lock, even if it has no TTL
  bool majority = false;           // of a quorum, wait for a majority only, not for all servers
  const OwnerId* owner = nullptr;  // a holder that is to be shown, even if it is not one of the first hundred
};

class Verbs {
 public:
  virtual ~Verbs() = default;

  // Takes the lock, or says why not. A waiter calls this again and again with the same owner id. To give up, and after
  // an error with maybe_executed, call release(): it removes the waiter from the queue and gives back what was granted
  // in the meantime. `sent`: just before this call; of several names in an attempt of a quorum, before the first.
  // Errors: also config, see Servers::refuse_eviction.
  virtual Result<Acquired> acquire(const AcquireRequest& request, TimePoint sent, const Until& until) = 0;

  // Extends the leases, all in one exchange, without a second attempt. A quorum also puts a hold back on servers that
  // lack it while a majority keeps it; this takes at most half a second, and until.interrupt does not end it. REQUIRES:
  // none of these holds is being released.
  virtual Result<AllRenewed> renew(std::span<const Hold> holds, milliseconds lease, const Until& until) = 0;
  // The same if only the owner is known. `lease` 0: the length of the lease as granted.
  virtual Result<Renewed> renew(const Lock& lock, const OwnerId& owner, milliseconds lease, const Until& until) = 0;

  // Gives back one hold, and removes its owner from the queue. If the owner never held the lock, a note only
  // increments its total. The outcomes free and other_owner mean that this call has released nothing: if an earlier
  // sending was executed and its reply was lost, the server remembers that and repeats the first outcome.
  virtual Result<Released> release(const ReleaseRequest& request, const Until& until) = 0;
  Result<Released> release(const Hold& hold, const Until& until, milliseconds keep = {},
                           const HistoryNote* note = nullptr) {
    return release({hold.lock, hold.owner, hold.id, keep, note, hold.lease}, until);
  }

  // Takes the lock away from the owner of `shown`, unless another job has begun under its hold since it was shown.
  // `by`: who does so; the owner is told. `note`: what to record in the history; null: nothing.
  virtual Result<Released> force_unlock(const Lock& lock, const HolderView& shown, const std::string& by,
                                        const Until& until, const HistoryNote* note) = 0;

  // Asks the processes that keep the lock for `owner` to stop and to release it. `by`: who asks, for people. Returns
  // how many received the message: 0 if the owner belongs to another program or is dead.
  virtual Result<long long> ask_to_stop(const LockName& name, const OwnerId& owner, const std::string& by,
                                        const Until& until) = 0;

  // A string with a TTL counts as held, because another program may have taken it with SET NX; `other_kind` says what
  // else it may be. A quorum's status also has each server's view.
  virtual Result<Status> inspect(const LockName& name, const Until& until, Look look = {}) = 0;
};

class ByScripts final : public Verbs {
 public:
  // `votes`: the server is one of a quorum.
  explicit ByScripts(redis::Client& client, Guard guard = Guard::off, bool votes = false)
      : client_(client), guard_(guard), votes_(votes) {}

  using Verbs::release;
  Result<Acquired> acquire(const AcquireRequest& request, TimePoint sent, const Until& until) override;
  Result<AllRenewed> renew(std::span<const Hold> holds, milliseconds lease, const Until& until) override;
  Result<Renewed> renew(const Lock& lock, const OwnerId& owner, milliseconds lease, const Until& until) override;
  Result<Released> release(const ReleaseRequest& request, const Until& until) override;
  Result<Released> force_unlock(const Lock& lock, const HolderView& shown, const std::string& by, const Until& until,
                                const HistoryNote* note) override;
  Result<long long> ask_to_stop(const LockName& name, const OwnerId& owner, const std::string& by,
                                const Until& until) override;
  Result<Status> inspect(const LockName& name, const Until& until, Look look) override;

  // Looks at each name as a plain lock, all in one exchange.
  std::vector<Result<Status>> inspect_plain(std::span<const LockName> names, const Until& until);

  // For a quorum, which asks each of its servers once in a round, and only by scripts:

  // As acquire(). Returns nothing if the time was up while the server still had more to do.
  Result<std::optional<Acquired>> ask(const AcquireRequest& request, TimePoint sent, Attempts attempts, Guard guard,
                                      const Until& until);
  // Renews each hold, all in one exchange. Returns one result for each.
  Result<std::vector<Renewed>> renew_once(std::span<const Hold> holds, milliseconds lease, const Until& until);
  // Raises the server's fencing tokens, in one exchange, where those of the holds are larger. One result for each;
  // false: the server lacks that hold. Errors: also wrong_kind if the key of a token contains something else.
  Result<std::vector<bool>> raise(std::span<const Hold> holds, const Until& until);
  // Gives back anything that was granted to these requests, in one exchange. Errors: that of the first that failed.
  Result<void> give_back(std::span<const AcquireRequest> requests, const Until& until);

 private:
  // Reads the reply to a renewal. Warns, but only once, if the epoch guard could not record the lease.
  Result<Renewed> renewal(const redis::Reply& reply);

  redis::Client& client_;
  Guard guard_;
  bool votes_;
  bool warned_ = false;  // that the guard cannot record a lease
};

// Errors (config, with maybe_executed): the server's last answer said that it may drop locks when its memory is full
// (Servers::refuse_eviction).
Result<void> expect_no_eviction(const redis::Client& client);

// What the replies of a server mean for a hold.

// Whether the lock was held as long as anything ran under it, as the reply to its release tells, which came at
// `answered`. No lease ends before `ends_at` (LeaseTiming::ends_at). If the hold was gone by then, someone deleted it,
// or the server lost its data. If it was gone later, it was not lost, provided that nobody holds the lock now, and that
// the fencing token shows that nobody was granted it since. (It does not show programs without tokens.) REQUIRES:
// at `ends_at`, nothing ran any longer.
bool lasted(const Hold& hold, const Released& released, TimePoint ends_at, TimePoint answered);

// Warns if the waiters could not be told, or the history not be written. `which`: what the warnings begin with.
void warn_of_trouble(const std::string& which, const Released& released);

struct Asked {
  std::size_t which = 0;  // the index of the hold
  std::string by;         // who asks, for people, escaped and cut
};

// The hold that a message from a control channel asks to stop. Returns nothing if the message is for another owner, or
// came from another channel.
std::optional<Asked> asked_to_stop(const redis::Message& message, std::span<const Hold> holds);

}  // namespace rlock::lock
