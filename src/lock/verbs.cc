// SPDX-License-Identifier: MIT
#include "lock/verbs.h"

#include <algorithm>

#include "base/random.h"
#include "base/text.h"
#include "lock/wire.h"
#include "lock/without_scripts.h"
#include "redis/server_info.h"

namespace rlock::lock {

std::string display(std::span<const Hold> holds) {
  std::string text;
  for (const Hold& hold : holds) text += (text.empty() ? "" : ", ") + hold.name().display();
  return text;
}

TimePoint oldest(std::span<const Hold> holds) { return std::ranges::min(holds, {}, &Hold::sent).sent; }

Result<void> expect_no_eviction(const redis::Client& client) {
  const auto policy = redis::evicts_by(client);
  if (!policy) return {};
  return std::unexpected(Error{Error::Code::config,
                               escaped(client.address().display()) + ": maxmemory-policy " + escaped(*policy, 40) +
                                   ": the server may evict a lock that is held; set noeviction, or take the risk by "
                                   "--allow-unsafe-eviction",
                               true});
}

Result<Acquired> acquire(redis::Client& client, const AcquireRequest& request, const Until& until) {
  // Of several sendings the first may have been the one that succeeded: count from it.
  const TimePoint sent = BootClock::now();
  auto acquired = wire::acquire(client, request, sent, Attempts::until_deadline, until);
  while (acquired && !*acquired) {
    if (until.over()) return Acquired{.expires_in = 0ms};
    acquired = wire::acquire(client, request, sent, Attempts::until_deadline, until);
  }
  if (!acquired && without_scripts::can_keep({request.name, request.mode.layout()}, acquired.error())) {
    acquired = without_scripts::acquire(client, request, acquired.error(), until);
  }
  if (acquired) RLOCK_TRY(expect_no_eviction(client));
  return *RLOCK_TRY(std::move(acquired));
}

void refuse_eviction(redis::Client& client) { redis::look_for_eviction(client); }

namespace {

// Others may wait for their release; waiters and newcomers do the rest.
constexpr milliseconds kGoOn = 300ms;

// A release that found more to do than one call may take goes on with it in the name of nobody, and so does a renewal
// that has seen a dead waiter. Whatever comes of this, the release or renewal is done.
void go_on(redis::Client& client, const Lock& lock, const Until& until) {
  const std::string nobody = OwnerId::fresh().text();
  for (bool more = true; more && !until.over();) {
    const auto released = wire::release(client, lock, {nobody, nobody, {}, nobody, {}}, Attempts::one, until);
    more = released && released->unfinished;
  }
}

// Says what is at the name instead, where it is no lock of that layout any more, and the server can be asked.
Renewed explained(redis::Client& client, const Lock& lock, const Renewed& renewed, const Until& until) {
  if (renewed.outcome != RenewOutcome::other_owner) return renewed;
  const auto found = wire::inspect(client, lock, until);
  if (!found || found->state != Status::State::other_kind) return renewed;
  return {RenewOutcome::other_kind, {}, found->other_kind};
}

}  // namespace

Result<Renewed> renew(redis::Client& client, const Lock& lock, const OwnerId& owner, milliseconds lease,
                      Attempts attempts, const Until& until) {
  const wire::LockOf one{lock, owner};
  const auto replies = wire::renew(client, std::span(&one, 1), lease, attempts, until);
  if (!replies && without_scripts::can_keep(lock, replies.error())) {
    return RLOCK_TRY(without_scripts::renew(client, lock, owner, lease, attempts, until));
  }
  const wire::RenewReply renewed = RLOCK_TRY(replies).front();
  if (renewed.untidy) go_on(client, lock, until.at_most(kGoOn));
  return explained(client, lock, renewed, until);
}

Result<AllRenewed> renew_all(redis::Client& client, std::span<const Hold> holds, milliseconds lease,
                             const Until& until) {
  std::vector<wire::LockOf> locks;
  for (const Hold& hold : holds) locks.push_back({hold.lock, hold.owner});
  auto replies = wire::renew_each(client, locks, lease, until);
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (replies[i] || !without_scripts::can_keep(holds[i].lock, replies[i].error())) continue;
    replies[i] = without_scripts::renew(client, holds[i].lock, holds[i].owner, lease, Attempts::one, until);
  }
  // One that is lost is lost, whatever another server of a cluster has to say, or does not say.
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (replies[i] && replies[i]->outcome != RenewOutcome::renewed) {
      return AllRenewed{explained(client, holds[i].lock, *replies[i], until), i};
    }
  }
  AllRenewed all{{RenewOutcome::renewed, milliseconds::max(), {}}, 0};
  for (const auto& reply : replies) all.found = std::min(all.found, RLOCK_TRY(reply).found);
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (replies[i]->untidy) go_on(client, holds[i].lock, until.at_most(kGoOn));
  }
  return all;
}

namespace {

// For how long the server remembers that it has executed a release: until that is sent again no more, or for an hour.
milliseconds remembered_for(const Until& until) {
  return std::min<milliseconds>(rlock::until(until.deadline) + 1s, 1h);
}

}  // namespace

Result<Released> release(redis::Client& client, const Lock& lock, const OwnerId& owner, const std::string& hold_id,
                         const Until& until, milliseconds keep, const HistoryNote* note) {
  const wire::ReleaseArguments arguments{owner.text(), hold_id, keep, random_uuid(), remembered_for(until), note};
  auto released = wire::release(client, lock, arguments, Attempts::until_deadline, until);
  if (!released && without_scripts::can_keep(lock, released.error())) {
    return without_scripts::release(client, lock, owner, keep, until, note);
  }
  if (released && released->unfinished) go_on(client, lock, until.at_most(kGoOn));
  return released;
}

Result<Released> release(redis::Client& client, const Hold& hold, const Until& until, milliseconds keep,
                         const HistoryNote* note) {
  return release(client, hold.lock, hold.owner, hold.id, until, keep, note);
}

bool lasted(const Hold& hold, const Released& released, TimePoint ends_at, TimePoint answered) {
  switch (released.outcome) {
    case ReleaseOutcome::released:
    case ReleaseOutcome::kept: return true;
    case ReleaseOutcome::free: return answered >= ends_at && !hold.token.empty() && released.token == hold.token;
    case ReleaseOutcome::other_owner:
    case ReleaseOutcome::other_kind: break;
  }
  return false;
}

Result<long long> ask_to_stop(redis::Client& client, const LockName& name, const OwnerId& owner, const std::string& by,
                              const Until& until) {
  const std::string channel = name.control_channel(), message = owner.text() + "\n" + by;
  const bool sharded = client.sharded(channel, until);
  const auto heard = RLOCK_TRY(client.insist({sharded ? "SPUBLISH" : "PUBLISH", channel, message}, until)).as_number();
  if (!heard) return client.unexpected_reply("PUBLISH");
  return *heard;
}

std::optional<Asked> asked_to_stop(const redis::Message& message, std::span<const Hold> holds) {
  const auto end = message.text.find('\n');
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (message.channel != holds[i].name().control_channel()) continue;
    if (message.text.substr(0, end) != holds[i].owner.text()) continue;
    return Asked{i, end == std::string::npos ? "somebody" : escaped(message.text.substr(end + 1), 200)};
  }
  return {};
}

Result<Released> force_unlock(redis::Client& client, const Lock& lock, const OwnerId& owner, const Until& until,
                              const HistoryNote* note) {
  auto released = wire::force_unlock(client, lock, owner, until, note);
  if (!released && without_scripts::can_keep(lock, released.error())) {
    return without_scripts::release(client, lock, owner, 0ms, until, note);
  }
  if (released && released->unfinished) go_on(client, lock, until);
  return released;
}

}  // namespace rlock::lock
