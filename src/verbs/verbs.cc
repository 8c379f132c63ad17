// SPDX-License-Identifier: MIT
#include "verbs/verbs.h"

#include "base/log.h"
#include "redis/server_info.h"

namespace rlock::lock {
namespace {

using redis::Reply;

// Short, because the caller may have more locks to release; waiters and newcomers do the rest.
constexpr milliseconds kGoOn = 300ms;

// After a reply that no script gives, it is unknown what was executed, and whether the next reply belongs to the next
// request.
template <class T>
Result<T> checked(redis::Client& client, Result<T> read) {
  if (read || read.error().code != Error::Code::protocol) return read;
  client.disconnect();
  read.error().maybe_executed = true;
  return read;
}

// Says which companion key has a value of another type, and what to do about it.
void explain(redis::Client& client, Guard guard, const LockName& name, Error& error, const Until& until) {
  std::vector<std::pair<std::string, std::string_view>> keys;
  for (const Companion& one : lua::kCompanions) {
    if (is_key(one) && one.word.starts_with("rlock:")) keys.emplace_back(name.companion(one), one.type);
  }
  if (guard != Guard::off) keys.emplace_back(lua::kEpoch, "hash");
  for (const auto& [key, right] : keys) {
    const auto type = client.insist({"TYPE", key}, until);
    if (!type) return;
    if (type->as_text() == right || type->as_text() == "none") continue;
    error.message = "the key " + escaped(key) + ", which only rlock uses, is a " + escaped(type->as_text(), 20) +
                    " that another program has written; delete it: that loses no lock";
    return;
  }
}

// Does what a release has left to do, or removes the dead waiter that a renewal has seen, by releases for an owner that
// does not exist. The release or renewal is done, even if this fails.
void go_on(redis::Client& client, const Lock& lock, const Until& until) {
  const OwnerId nobody = OwnerId::fresh();
  for (bool more = true; more && !until.over();) {
    const Call call = release_call(client, {lock, nobody, nobody.text()}, nobody.text(), {}, until);
    const auto reply = send(client, call, Attempts::one, until);
    const auto released = reply ? checked(client, read_release(*reply)) : Released{};
    more = released && released->unfinished;
  }
}

Result<Status> look_at(redis::Client& client, const Lock& lock, const Until& until, const OwnerId* owner = nullptr) {
  const Call call = inspect_call(client, lock, until, owner);
  return checked(client, read_inspection(RLOCK_TRY(send(client, call, Attempts::until_deadline, until)), lock));
}

Result<Status> look_at_any(redis::Client& client, const LockName& name, const Until& until, const OwnerId* owner) {
  // Most are plain locks; for others, the script says what they are.
  Status status = RLOCK_TRY(look_at(client, {name}, until));
  if (const auto layout = status.other_kind.layout(); layout && *layout != Layout::plain) {
    status = RLOCK_TRY(look_at(client, {name, *layout}, until, owner));
  } else if (status.other_kind.may_be_string_lock()) {
    // A string without a TTL is a lock only if the caller knows it: Look::as_string.
    const OtherKind instead = status.other_kind;
    Status string = RLOCK_TRY(look_at(client, {name, Layout::string}, until));
    const HolderView* holder = string.holder();
    if (holder && (!holder->by_set || holder->expires_in)) status = std::move(string);
    status.other_kind = instead;
  }
  return status;
}

// Says what the key contains instead, if it is no longer a lock of that layout, and the server can be asked.
Renewed explained(redis::Client& client, const Lock& lock, const Renewed& renewed, const Until& until) {
  if (renewed.outcome != RenewOutcome::other_owner) return renewed;
  const auto found = look_at(client, lock, until);
  if (!found || found->state != Status::State::other_kind) return renewed;
  return {RenewOutcome::other_kind, {}, found->other_kind};
}

// Behind Sentinels, directs the next request to the server that they call the master now, because the connected one may
// have been replaced without knowing it. Returns why it is unknown which one that is; "" if it is known.
std::string follow_master(redis::Client& client, const Until& until) {
  using Standing = redis::Client::Standing;
  const auto standing = client.standing(until.at_most(rlock::until(until.deadline) / 2));
  if (!standing) return standing.error().message;
  switch (*standing) {
    case Standing::master: return "";
    case Standing::another: log::debug("the Sentinels name another master now"); return "";
    case Standing::by_few: return "no more than half of the Sentinels answer (-v says why)";
    case Standing::another_by_few: return "no more than half of the Sentinels answer, and they name another master";
  }
  return "";
}

Result<Released> release_by(redis::Client& client, const Call& call, const Until& until) {
  return checked(client, read_release(RLOCK_TRY(send(client, call, Attempts::until_deadline, until))));
}

// A hold that was not renewed counts first, regardless of what other servers of a cluster answer.
Result<AllRenewed> all_of(std::span<const Result<Renewed>> each) {
  for (std::size_t i = 0; i < each.size(); ++i) {
    if (each[i] && each[i]->outcome != RenewOutcome::renewed) return AllRenewed{*each[i], i};
  }
  AllRenewed all{{RenewOutcome::renewed, milliseconds::max(), {}}};
  for (const auto& one : each) all.found = std::min(all.found, RLOCK_TRY(one).found);
  return all;
}

}  // namespace

std::string display(std::span<const Hold> holds) {
  return joined(holds, ", ", [](const Hold& hold) { return hold.name().display(); });
}

TimePoint oldest(std::span<const Hold> holds) { return std::ranges::min(holds, {}, &Hold::sent).sent; }

const HolderView* Status::oldest_holder() const {
  const auto before = [](const HolderView& one, const HolderView& other) {
    return one.held_for != other.held_for ? one.held_for > other.held_for : one.owner < other.owner;
  };
  const auto oldest = std::ranges::min_element(holders, before);
  return oldest == holders.end() ? nullptr : &*oldest;
}

Result<void> expect_no_eviction(const redis::Client& client) {
  const auto policy = redis::evicts_by(client);
  if (!policy) return {};
  return std::unexpected(Error{Error::Code::config,
                               escaped(client.address().display()) + ": maxmemory-policy " + escaped(*policy, 40) +
                                   ": the server may evict a lock that is held; set noeviction, or accept the risk "
                                   "with --allow-unsafe-eviction",
                               true});
}

// Repeats the call as long as it has more to do than one call may take.
Result<std::optional<Acquired>> ByScripts::ask(const AcquireRequest& request, TimePoint sent, Attempts attempts,
                                               Guard guard, const Until& until) {
  for (;;) {
    const Call call = acquire_call(client_, request, newcomer_guard(client_, guard, until), votes_, until);
    auto reply = send(client_, call, attempts, until);
    if (!reply && reply.error().code == Error::Code::wrong_kind)
      explain(client_, guard_, request.name, reply.error(), until);
    auto acquired = RLOCK_TRY(checked(client_, read_acquire(RLOCK_TRY(std::move(reply)), request, sent)));
    if (acquired || until.over()) return acquired;
  }
}

Result<Acquired> ByScripts::acquire(const AcquireRequest& request, TimePoint sent, const Until& until) {
  auto acquired = RLOCK_TRY(ask(request, sent, Attempts::until_deadline, guard_, until));
  if (!acquired) return Held{.expires_in = 0ms};
  RLOCK_TRY(expect_no_eviction(client_));
  return *std::move(acquired);
}

Result<Renewed> ByScripts::renewal(const Reply& reply) {
  auto renewed = checked(client_, read_renewal(reply));
  if (renewed && !renewed->unrecorded.empty() && !std::exchange(warned_, true)) {
    log::warning(escaped(client_.address().display()) + ": the epoch guard cannot record a lease in rlock:epoch (" +
                 escaped(renewed->unrecorded, 200) +
                 "): after a failover or a restart, the lock may be granted again too early; rlock doctor says what "
                 "to do");
  }
  return renewed;
}

Result<std::vector<Renewed>> ByScripts::renew_once(std::span<const Hold> holds, milliseconds lease,
                                                   const Until& until) {
  std::vector<Renewed> renewed;
  for (const auto& reply : send_all(client_, renew_calls(client_, holds, lease, guard_, until), until)) {
    renewed.push_back(RLOCK_TRY(renewal(RLOCK_TRY(reply))));
  }
  return renewed;
}

Result<AllRenewed> ByScripts::renew(std::span<const Hold> holds, milliseconds lease, const Until& until) {
  const TimePoint sent = BootClock::now();
  if (const std::string unsure = follow_master(client_, until); !unsure.empty()) log::debug(unsure);
  std::vector<Result<Renewed>> each;
  for (const auto& reply : send_all(client_, renew_calls(client_, holds, lease, guard_, until), until)) {
    each.push_back(reply ? renewal(*reply) : std::unexpected(reply.error()));
  }
  AllRenewed all = RLOCK_TRY(all_of(each));
  if (all.outcome != RenewOutcome::renewed)
    return AllRenewed{explained(client_, holds[all.at].lock, all, until), all.at, sent};
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (each[i]->untidy) go_on(client_, holds[i].lock, until.at_most(kGoOn));
  }
  all.sent = sent;
  return all;
}

Result<Renewed> ByScripts::renew(const Lock& lock, const OwnerId& owner, milliseconds lease, const Until& until) {
  if (const std::string unsure = follow_master(client_, until); !unsure.empty()) log::debug(unsure);
  const Hold hold{lock, owner, "", "", 0ms, {}};
  const auto calls = renew_calls(client_, {&hold, 1}, lease, guard_, until);
  const auto renewed = RLOCK_TRY(renewal(RLOCK_TRY(send(client_, calls.front(), Attempts::until_deadline, until))));
  if (renewed.untidy) go_on(client_, lock, until.at_most(kGoOn));
  return explained(client_, lock, renewed, until);
}

Result<Released> ByScripts::release(const ReleaseRequest& request, const Until& until) {
  const std::string unsure = request.lease > 0ms ? follow_master(client_, until) : "";
  // How long the server remembers that it was executed: while it can be sent again.
  const auto remember = std::min<milliseconds>(rlock::until(until.deadline) + 1s, 1h);
  const Call call = release_call(client_, request, random_uuid(), remember, until);
  Released released = RLOCK_TRY(release_by(client_, call, until));
  if (released.unfinished) go_on(client_, request.lock, until.at_most(kGoOn));
  if (!unsure.empty()) {
    released.unsure = "it is not known whether the server was still the master at the release: " + unsure +
                      "; if it was not, another job may have had the lock";
  }
  return released;
}

Result<Released> ByScripts::force_unlock(const Lock& lock, const HolderView& shown, const std::string& by,
                                         const Until& until, const HistoryNote* note) {
  const Call call = force_unlock_call(client_, lock, shown, by, note, votes_, until);
  Released released = RLOCK_TRY(release_by(client_, call, until));
  if (released.unfinished) go_on(client_, lock, until);
  return released;
}

Result<long long> ByScripts::ask_to_stop(const LockName& name, const OwnerId& owner, const std::string& by,
                                         const Until& until) {
  const std::string channel = name.control_channel(), message = owner.text() + "\n" + by;
  const bool sharded = client_.sharded(channel, until);
  const auto heard = RLOCK_TRY(client_.insist({sharded ? "SPUBLISH" : "PUBLISH", channel, message}, until)).as_number();
  if (!heard) return client_.unexpected_reply("PUBLISH");
  return *heard;
}

Result<std::vector<bool>> ByScripts::raise(std::span<const Hold> holds, const Until& until) {
  std::vector<Call> calls;
  for (const Hold& hold : holds) calls.push_back(raise_call(client_, hold, until));
  std::vector<bool> raised;
  const auto replies = send_all(client_, calls, until);
  for (std::size_t i = 0; i < holds.size(); ++i) {
    const Reply reply = RLOCK_TRY(replies[i]);
    raised.push_back(RLOCK_TRY(checked(client_, read_raise(reply, holds[i].lock))));
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

Result<Status> ByScripts::inspect(const LockName& name, const Until& until, Look look) {
  const auto any = [&] { return look_at_any(client_, name, until, look.owner); };
  auto status = look.as_string ? look_at(client_, {name, Layout::string}, until) : any();
  if (look.as_string && status && status->state == Status::State::other_kind) status = any();
  if (status) status->asked = client_.address().display();
  return status;
}

std::vector<Result<Status>> ByScripts::inspect_plain(std::span<const LockName> names, const Until& until) {
  std::vector<Call> calls;
  for (const LockName& name : names) calls.push_back(inspect_call(client_, {name}, until));
  std::vector<Result<Status>> all;
  const auto replies = send_all(client_, calls, until);
  for (std::size_t i = 0; i < names.size(); ++i) {
    all.push_back(replies[i] ? checked(client_, read_inspection(*replies[i], {names[i]}))
                             : std::unexpected(replies[i].error()));
  }
  return all;
}

bool lasted(const Hold& hold, const Released& released, TimePoint ends_at, TimePoint answered) {
  if (released.outcome != ReleaseOutcome::free) return ours(released);
  return answered >= ends_at && !hold.token.empty() && released.token == hold.token;
}

void warn_of_trouble(const std::string& which, const Released& released) {
  if (!released.unwritten.empty())
    log::warning(which + "the history could not be written: " + escaped(released.unwritten, 200));
  if (!released.fault.empty()) log::warning(which + "waiters could not be told: " + escaped(released.fault, 200));
}

std::optional<Asked> asked_to_stop(const redis::Message& message, std::span<const Hold> holds) {
  const auto end = message.text.find('\n');
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (message.channel != holds[i].name().control_channel()) continue;
    if (message.text.substr(0, end) != holds[i].owner.text()) continue;
    return Asked{i, end == std::string::npos ? "someone" : escaped(message.text.substr(end + 1), 200)};
  }
  return {};
}

}  // namespace rlock::lock
