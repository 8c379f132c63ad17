// SPDX-License-Identifier: MIT
#include "lock/without_scripts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/random.h"
#include "redis/server_error.h"

namespace rlock::lock::without_scripts {
namespace {

using redis::Reply, redis::Words;

// Owner ids have no more bytes; of a longer value the beginning is shown.
constexpr const char* kLastByte = "511";

Result<Reply> ask(redis::Client& client, const Words& words, Attempts attempts, const Until& until) {
  return attempts == Attempts::one ? client.call(words, until) : client.insist(words, until);
}

// Sets the time of the string if its value is `owner`, which can be sent twice without harm. False: it is not, or the
// string is not there. Errors: also protocol, where the server does not know IFEQ.
Result<bool> set_time(redis::Client& client, const LockName& name, const std::string& owner, milliseconds time,
                      Attempts attempts, const Until& until) {
  const std::string ms = std::to_string(time.count());
  const Reply reply = RLOCK_TRY(ask(client, {"SET", name.text(), owner, "IFEQ", owner, "PX", ms}, attempts, until));
  return reply.as_text() == "OK";
}

// The one that holds the lock, and for how long; nobody does where `holders` is empty.
Result<Status> look(redis::Client& client, const LockName& name, const Until& until) {
  Status status{.lock = {name, Layout::string}};
  const auto value = client.insist({"GETRANGE", name.text(), "0", kLastByte}, until);
  if (!value && value.error().code == Error::Code::wrong_kind) {
    const auto type = client.insist({"TYPE", name.text()}, until);
    status.state = Status::State::other_kind;
    status.other_kind = {.what = type ? type->as_text() : "key of another type", .foreign = true};
  }
  if (!value && value.error().code != Error::Code::wrong_kind) return std::unexpected(value.error());
  const auto ttl = RLOCK_TRY(client.insist({"PTTL", name.text()}, until)).as_number().value_or(-2);
  std::optional<milliseconds> left;
  if (ttl >= 0) left = milliseconds(std::min(ttl, 1LL << 53));
  if (!value) {
    status.other_kind.expires_in = left;
  } else if (ttl != -2) {
    status.state = Status::State::held;
    status.number = 1;
    status.holders.push_back({.owner = value->as_text(), .mode = "", .holds = 1, .expires_in = left, .by_set = true});
  }
  return status;
}

// Errors: config, where it wants what only a script can give.
Result<void> expect_simple(const AcquireRequest& request, const Error& refused) {
  const QueueRequest queueing = request.queueing.value_or(QueueRequest{});
  if (!queueing.most && !queueing.replace && queueing.priority == 0) return {};
  return fail(Error::Code::config, refused.message + "; without scripts there is no queue with places and priorities");
}

}  // namespace

bool can_keep(const Lock& lock, const Error& refused) {
  return lock.layout == Layout::string && redis::refuses_scripts(refused);
}

Result<Acquired> acquire(redis::Client& client, const AcquireRequest& request, const Error& refused,
                         const Until& until) {
  RLOCK_TRY(expect_simple(request, refused));
  const LockName& name = request.name;
  const std::string owner = request.owner.text(), ms = std::to_string(request.lease.count());
  // Nobody has that value: this finds out whether the lock could be renewed and released before it is taken.
  const auto known = set_time(client, name, random_uuid(), 1ms, Attempts::until_deadline, until);
  if (!known && known.error().code == Error::Code::protocol && !known.error().maybe_executed) {
    Error error = refused;
    error.message += "; without scripts rlock needs SET with IFEQ, which this server has not (Redis 8.4, Valkey 8.1)";
    return std::unexpected(std::move(error));
  }
  if (!known && known.error().code != Error::Code::wrong_kind) return std::unexpected(known.error());

  // Renewals and the release need what this does: a missing right shows before anything is taken.
  Status status = RLOCK_TRY(look(client, name, until));
  TimePoint sent = BootClock::now();
  const auto grant = [&] {
    return Acquired{.outcome = Acquired::Outcome::granted,
                    .hold = Hold{{name, Layout::string}, request.owner, request.hold(), "0", request.lease, sent}};
  };
  if (status.state == Status::State::free) {
    const Reply set = RLOCK_TRY(client.insist({"SET", name.text(), owner, "NX", "PX", ms}, until));
    if (set.as_text() == "OK") return grant();
    status = RLOCK_TRY(look(client, name, until));
  }
  if (status.state == Status::State::other_kind) {
    return Acquired{.outcome = Acquired::Outcome::other_kind, .instead = status.other_kind};
  }
  const HolderView* holder = status.holder();
  if (!holder) return Acquired{.expires_in = 0ms};
  if (request.heir && holder->owner == request.heir->text()) {
    return fail(Error::Code::config,
                refused.message + "; without scripts a job cannot take the lock that it is run under");
  }
  // An earlier sending has taken it, whose time began before this call.
  if (holder->owner == owner) {
    sent = BootClock::now();
    if (RLOCK_TRY(set_time(client, name, owner, request.lease, Attempts::until_deadline, until))) return grant();
  }
  return Acquired{.expires_in = holder->expires_in, .holders = 1, .holder = *holder};
}

Result<wire::RenewReply> renew(redis::Client& client, const Lock& lock, const OwnerId& owner, milliseconds lease,
                                Attempts attempts, const Until& until) {
  if (lease == 0ms) return wire::RenewReply{{RenewOutcome::lease_unknown, {}, {}}};
  const auto left = RLOCK_TRY(ask(client, {"PTTL", lock.name.text()}, attempts, until)).as_number().value_or(0);
  const milliseconds found(std::clamp(left, 0LL, 1LL << 53));
  // A job counts on the longer lease that it was granted.
  if (RLOCK_TRY(set_time(client, lock.name, owner.text(), std::max(lease, found), attempts, until))) {
    return wire::RenewReply{{RenewOutcome::renewed, found, {}}};
  }
  return wire::RenewReply{{left == -2 ? RenewOutcome::free : RenewOutcome::other_owner, {}, {}}};
}

Result<Released> release(redis::Client& client, const Lock& lock, const OwnerId& owner, milliseconds keep,
                         const Until& until, const HistoryNote* note) {
  const LockName& name = lock.name;
  // A user who may run no scripts any more may have nested runs, which a script has counted. Without the right to look,
  // there never were any.
  const auto holds = client.insist({"HGET", name.holder_key(), "holds:" + owner.text()}, until);
  if (holds && holds->as_number().value_or(1) > 1) {
    return fail(Error::Code::config,
                "it is held more than once, and to count that needs scripts, which the server refuses now");
  }
  Released released;
  const Status status = RLOCK_TRY(look(client, name, until));
  const HolderView* holder = status.holder();
  if (!holder || holder->owner != owner.text()) {
    released.outcome = status.state == Status::State::other_kind ? ReleaseOutcome::other_kind
                       : holder                                  ? ReleaseOutcome::other_owner
                                                                 : ReleaseOutcome::free;
    released.instead = status.other_kind;
    return released;
  }
  // The lock was the owner's until now, which is what a release reports. This reply tells nothing more: at a second
  // sending the string may be gone.
  RLOCK_TRY(set_time(client, name, owner.text(), std::max(keep, 1ms), Attempts::until_deadline, until));
  released.outcome = keep > 0ms ? ReleaseOutcome::kept : ReleaseOutcome::released;
  if (note && !note->fields.empty()) released.unwritten = "the server runs no scripts";
  const Wakeup& wakeup = name.wakeup();
  if (keep > 0ms || wakeup.way == Wakeup::Way::none) return released;
  if (wakeup.way == Wakeup::Way::push) {
    released.fault = "the server runs no scripts, which waking them needs";
  } else if (const auto told = client.call({"PUBLISH", wakeup.where, wakeup.what}, until); !told) {
    released.fault = told.error().message;
  }
  return released;
}

Result<Status> inspect(redis::Client& client, const LockName& name, const Until& until) {
  return look(client, name, until);
}

}  // namespace rlock::lock::without_scripts
