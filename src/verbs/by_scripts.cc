// SPDX-License-Identifier: MIT
#include "verbs/by_scripts.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "redis/server_error.h"
#include "redis/server_info.h"
#include "verbs/without_scripts.h"

namespace rlock::lock {
namespace {

using redis::Reply;

// Short, because the caller may have more locks to release; waiters and newcomers do the rest.
constexpr milliseconds kGoOn = 300ms;

// How long the server remembers that it has executed a release: as long as that may be sent again, up to an hour.
milliseconds remembered_for(const Until& until) {
  return std::min<milliseconds>(rlock::until(until.deadline) + 1s, 1h);
}

// `result` is that of a request by script. If scripts are refused, and `lock` can be kept without, `other` makes the
// same request without scripts.
template <class T, class Other>
Result<T> or_without(redis::Client& client, const Lock& lock, Result<T> result, const Other& other) {
  if (result || !WithoutScripts::can_keep(lock, result.error())) return result;
  return other(WithoutScripts(client, result.error()));
}

}  // namespace

Result<void> expect_no_eviction(const redis::Client& client) {
  const auto policy = redis::evicts_by(client);
  if (!policy) return {};
  return std::unexpected(Error{Error::Code::config,
                               escaped(client.address().display()) + ": maxmemory-policy " + escaped(*policy, 40) +
                                   ": the server may evict a lock that is held; set noeviction, or accept the risk "
                                   "with --allow-unsafe-eviction",
                               true});
}

// After a reply that no script gives, it is unknown what was executed, and whether the next reply belongs to the next
// request.
template <class T>
Result<T> ByScripts::checked(Result<T> read) {
  if (read || read.error().code != Error::Code::protocol) return read;
  client_.disconnect();
  read.error().maybe_executed = true;
  return read;
}

// Says which companion key has a value of another type, and what to do about it.
void ByScripts::explain(const LockName& name, Error& error, const Until& until) {
  const std::pair<std::string, std::string_view> keys[] = {
      {name.holder_key(), "hash"}, {name.queue_key(), "zset"}, {name.waiters_key(), "hash"},
      {name.once_key(), "hash"},   {name.pool_key(), "hash"},  {std::string(kEpochKey), "hash"}};
  for (const auto& [key, right] : keys) {
    if (key == kEpochKey && guard_ == Guard::off) continue;
    const auto type = client_.insist({"TYPE", key}, until);
    if (!type) return;
    if (type->as_text() == right || type->as_text() == "none") continue;
    error.message = name.display() + ": the key " + escaped(key) + ", which only rlock uses, is a " +
                    escaped(type->as_text(), 20) + " that another program has written; delete it: that loses no lock";
    return;
  }
}

// Repeats the call as long as it has more to do than one call may take.
Result<std::optional<Acquired>> ByScripts::ask(const AcquireRequest& request, TimePoint sent, Attempts attempts,
                                               Guard guard, const Until& until) {
  for (;;) {
    const Call call = acquire_call(client_, request, newcomer_words(client_, guard, until), until);
    auto reply = send(client_, call, attempts, until);
    if (!reply && reply.error().code == Error::Code::wrong_kind) explain(request.name, reply.error(), until);
    auto acquired = RLOCK_TRY(checked(read_acquire(RLOCK_TRY(std::move(reply)), request, sent)));
    if (acquired || until.over()) return acquired;
  }
}

Result<Acquired> ByScripts::acquire(const AcquireRequest& request, TimePoint sent, const Until& until) {
  auto acquired = or_without(client_, request.lock(), ask(request, sent, Attempts::until_deadline, guard_, until),
                             [&](WithoutScripts without) -> Result<std::optional<Acquired>> {
                               warn_of_no_guard();
                               return RLOCK_TRY(without.acquire(request, until));
                             });
  if (!acquired) return std::unexpected(std::move(acquired).error());
  if (!*acquired) return Acquired{.expires_in = 0ms};
  RLOCK_TRY(expect_no_eviction(client_));
  return **std::move(acquired);
}

void ByScripts::warn_of_no_guard() {
  if (guard_ == Guard::off || std::exchange(warned_, true)) return;
  log::warning(escaped(client_.address().display()) +
               ": the server refuses scripts, so there is no epoch guard: after a failover or a restart, locks that it "
               "has forgotten may be granted again");
}

// Does what a release has left to do, or removes the dead waiter that a renewal has seen, by releases for an owner that
// does not exist. The release or renewal is done, even if this fails.
void ByScripts::go_on(const Lock& lock, const Until& until) {
  const OwnerId nobody = OwnerId::fresh();
  for (bool more = true; more && !until.over();) {
    const Call call = release_call(client_, {lock, nobody, nobody.text()}, nobody.text(), {}, until);
    const auto reply = send(client_, call, Attempts::one, until);
    const auto released = reply ? checked(read_release(*reply)) : Released{};
    more = released && released->unfinished;
  }
}

// Says what the key contains instead, if it is no longer a lock of that layout, and the server can be asked.
Renewed ByScripts::explained(const Lock& lock, const Renewed& renewed, const Until& until) {
  if (renewed.outcome != RenewOutcome::other_owner) return renewed;
  const auto found = look_at(lock, until);
  if (!found || found->state != Status::State::other_kind) return renewed;
  return {RenewOutcome::other_kind, {}, found->other_kind};
}

Result<std::vector<RenewReply>> ByScripts::renew_once(std::span<const Hold> holds, milliseconds lease,
                                                      const Until& until) {
  std::vector<RenewReply> renewed;
  for (const auto& reply : send_all(client_, renew_calls(client_, holds, lease, guard_, until), until)) {
    renewed.push_back(RLOCK_TRY(checked(read_renewal(RLOCK_TRY(reply)))));
  }
  return renewed;
}

Result<AllRenewed> ByScripts::renew_all(std::span<const Hold> holds, milliseconds lease, TimePoint,
                                        const Until& until) {
  if (const std::string unsure = follow_master(until); !unsure.empty()) log::debug(unsure);
  std::vector<Result<Renewed>> each;
  std::vector<bool> untidy;
  const auto replies = send_all(client_, renew_calls(client_, holds, lease, guard_, until), until);
  for (std::size_t i = 0; i < holds.size(); ++i) {
    const Hold& hold = holds[i];
    auto read = replies[i] ? checked(read_renewal(*replies[i])) : std::unexpected(replies[i].error());
    untidy.push_back(read && read->untidy);
    each.push_back(or_without(client_, hold.lock, Result<Renewed>(std::move(read)), [&](WithoutScripts without) {
      return without.renew(hold.lock, hold.owner, lease, Attempts::one, until);
    }));
  }
  AllRenewed all = RLOCK_TRY(all_of(each));
  if (all.outcome != RenewOutcome::renewed) return AllRenewed{explained(holds[all.at].lock, all, until), all.at};
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (untidy[i]) go_on(holds[i].lock, until.at_most(kGoOn));
  }
  return all;
}

Result<Renewed> ByScripts::renew(const Lock& lock, const OwnerId& owner, milliseconds lease, const Until& until) {
  const Hold hold{lock, owner, "", "", 0ms, {}};
  bool untidy = false;
  const auto by_script = [&]() -> Result<Renewed> {
    const auto calls = renew_calls(client_, {&hold, 1}, lease, guard_, until);
    const RenewReply renewed =
        RLOCK_TRY(checked(read_renewal(RLOCK_TRY(send(client_, calls.front(), Attempts::until_deadline, until)))));
    untidy = renewed.untidy;
    return renewed;
  };
  const Renewed renewed = RLOCK_TRY(or_without(client_, lock, by_script(), [&](WithoutScripts without) {
    return without.renew(lock, owner, lease, Attempts::until_deadline, until);
  }));
  if (untidy) go_on(lock, until.at_most(kGoOn));
  return explained(lock, renewed, until);
}

// Behind Sentinels, directs the next request to the server that they call the master now, because the connected one may
// have been replaced without knowing it. Returns why it is unknown which one that is; "" if it is known.
std::string ByScripts::follow_master(const Until& until) {
  using Standing = redis::Connections::Standing;
  const auto standing = client_.standing(until.at_most(rlock::until(until.deadline) / 2));
  if (!standing) return standing.error().message;
  switch (*standing) {
    case Standing::master: return "";
    case Standing::another: log::debug("the Sentinels name another master now"); return "";
    case Standing::by_few: return "no more than half of the Sentinels answer";
    case Standing::another_by_few: return "no more than half of the Sentinels answer, and they name another master";
  }
  return "";
}

Result<Released> ByScripts::release_by(const Call& call, const ReleaseRequest& request, const Until& until) {
  const auto by_script = [&]() -> Result<Released> {
    return checked(read_release(RLOCK_TRY(send(client_, call, Attempts::until_deadline, until))));
  };
  return or_without(client_, request.lock, by_script(),
                    [&](WithoutScripts without) { return without.release(request, until); });
}

Result<Released> ByScripts::release(const ReleaseRequest& request, const Until& until) {
  const std::string unsure = request.lease > 0ms ? follow_master(until) : "";
  const Call call = release_call(client_, request, random_uuid(), remembered_for(until), until);
  Released released = RLOCK_TRY(release_by(call, request, until));
  if (released.unfinished) go_on(request.lock, until.at_most(kGoOn));
  if (!unsure.empty()) {
    released.unsure = "it is not known whether the server was still the master at the release: " + unsure +
                      "; if it was not, another job may have had the lock";
  }
  return released;
}

Result<Released> ByScripts::force_unlock(const Lock& lock, const OwnerId& owner, const Until& until,
                                         const HistoryNote* note) {
  const Call call = force_unlock_call(client_, lock, owner, note, until);
  Released released = RLOCK_TRY(release_by(call, {lock, owner, "", {}, note}, until));
  if (released.unfinished) go_on(lock, until);
  return released;
}

Result<bool> ByScripts::raise(std::span<const Hold> holds, const Until& until) {
  std::vector<Call> calls;
  for (const Hold& hold : holds) calls.push_back(raise_call(client_, hold, until));
  bool raised = true;
  const auto replies = send_all(client_, calls, until);
  for (std::size_t i = 0; i < holds.size(); ++i) {
    const Reply reply = RLOCK_TRY(replies[i]);
    raised = RLOCK_TRY(checked(read_raise(reply, holds[i].lock))) && raised;
  }
  return raised;
}

Result<void> ByScripts::give_back(std::span<const AcquireRequest> requests, const Until& until) {
  std::vector<Call> calls;
  for (const AcquireRequest& request : requests) {
    for (const OwnerId& owner : request.owners()) {
      calls.push_back(release_call(client_, {request.lock(), owner, request.hold()}, owner.text(), {}, until));
    }
  }
  for (const auto& reply : send_all(client_, calls, until)) RLOCK_TRY(reply);
  return {};
}

Result<Status> ByScripts::look_at(const Lock& lock, const Until& until) {
  const Call call = inspect_call(client_, lock, until);
  return checked(read_inspection(RLOCK_TRY(send(client_, call, Attempts::until_deadline, until)), lock));
}

Result<Status> ByScripts::look_at_any(const LockName& name, const Until& until) {
  // Most are plain locks; for others, the script says what they are.
  auto plain = look_at({name}, until);
  if (!plain && WithoutScripts::can_keep({name, Layout::string}, plain.error())) {
    // If it is not a string, it may be a lock of another kind, at which only a script can look.
    auto string = WithoutScripts(client_, plain.error()).inspect(name, until);
    return string && string->state == Status::State::other_kind ? plain : string;
  }
  Status status = RLOCK_TRY(std::move(plain));
  if (const auto layout = status.other_kind.layout(); layout && *layout != Layout::plain) {
    status = RLOCK_TRY(look_at({name, *layout}, until));
  } else if (status.other_kind.may_be_string_lock()) {
    // A string without a TTL is a lock only if the caller knows it: Look::as_string.
    const OtherKind instead = status.other_kind;
    Status string = RLOCK_TRY(look_at({name, Layout::string}, until));
    const HolderView* holder = string.holder();
    if (holder && (!holder->by_set || holder->expires_in)) status = std::move(string);
    status.other_kind = instead;
  }
  return status;
}

Result<Status> ByScripts::inspect(const LockName& name, const Until& until, Look look) {
  auto status = look.as_string ? look_at({name, Layout::string}, until) : look_at_any(name, until);
  const bool is_string = status ? status->state != Status::State::other_kind : !redis::refuses_scripts(status.error());
  if (look.as_string && !is_string) status = look_at_any(name, until);
  if (status) status->asked = client_.address().display();
  return status;
}

std::vector<Result<Status>> ByScripts::inspect_plain(std::span<const LockName> names, const Until& until) {
  std::vector<Call> calls;
  for (const LockName& name : names) calls.push_back(inspect_call(client_, {name}, until));
  std::vector<Result<Status>> all;
  const auto replies = send_all(client_, calls, until);
  for (std::size_t i = 0; i < names.size(); ++i) {
    all.push_back(replies[i] ? checked(read_inspection(*replies[i], {names[i]})) : std::unexpected(replies[i].error()));
  }
  return all;
}

}  // namespace rlock::lock
