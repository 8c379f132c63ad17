// SPDX-License-Identifier: MIT
#include "verbs/without_scripts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/random.h"
#include "redis/server_error.h"

namespace rlock::lock {
namespace {

// Owner ids are no longer than this; of a longer value, the beginning is shown.
constexpr const char* kLastByte = "511";

Result<redis::Reply> send(redis::Client& client, const redis::Words& words, Attempts attempts, const Until& until) {
  return attempts == Attempts::one ? client.call(words, until) : client.insist(words, until);
}

}  // namespace

bool WithoutScripts::can_keep(const Lock& lock, const Error& refused) {
  return lock.layout == Layout::string && redis::refuses_scripts(refused);
}

// Sets the TTL of the string if its value is `owner`; can be sent twice without harm. False: the value is another one,
// or there is no string. Errors: also protocol if the server does not know IFEQ.
Result<bool> WithoutScripts::set_time(const LockName& name, const std::string& owner, milliseconds time,
                                      Attempts attempts, const Until& until) {
  const std::string ms = std::to_string(time.count());
  const auto reply = RLOCK_TRY(send(client_, {"SET", name.text(), owner, "IFEQ", owner, "PX", ms}, attempts, until));
  return reply.as_text() == "OK";
}

Result<Status> WithoutScripts::inspect(const LockName& name, const Until& until) {
  Status status{.lock = {name, Layout::string}};
  const auto value = client_.insist({"GETRANGE", name.text(), "0", kLastByte}, until);
  if (!value && value.error().code == Error::Code::wrong_kind) {
    const auto type = client_.insist({"TYPE", name.text()}, until);
    status.state = Status::State::other_kind;
    status.other_kind = {.what = type ? type->as_text() : "key of another type", .foreign = true};
  }
  if (!value && value.error().code != Error::Code::wrong_kind) return std::unexpected(value.error());
  const auto ttl = RLOCK_TRY(client_.insist({"PTTL", name.text()}, until)).as_number().value_or(-2);
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

// Whether the lock could be renewed and released. Errors: the refusal of scripts if it could not.
Result<void> WithoutScripts::expect_compare(const LockName& name, const Until& until) {
  // No lock has this value.
  const auto known = set_time(name, random_uuid(), 1ms, Attempts::until_deadline, until);
  if (known || known.error().code == Error::Code::wrong_kind) return {};
  if (known.error().code != Error::Code::protocol || known.error().maybe_executed) {
    return std::unexpected(known.error());
  }
  Error error = refused_;
  error.message +=
      "; without scripts rlock needs SET with IFEQ, which this server does not have (Redis 8.4, Valkey 8.1)";
  return std::unexpected(std::move(error));
}

Result<Acquired> WithoutScripts::acquire(const AcquireRequest& request, const Until& until) {
  const QueueRequest queueing = request.queueing.value_or(QueueRequest{});
  if (queueing.most || queueing.replace || queueing.priority != 0) {
    return fail(Error::Code::config,
                refused_.message + "; without scripts there is no queue with places and priorities");
  }
  if (request.once) {
    return fail(Error::Code::config,
                refused_.message + "; without scripts the success of a job cannot be remembered with its release");
  }
  const LockName& name = request.name;
  const std::string owner = request.owner.text(), ms = std::to_string(request.lease.count());
  // These need the rights of renewals and of the release, so a missing one shows before anything is taken.
  RLOCK_TRY(expect_compare(name, until));
  Status status = RLOCK_TRY(inspect(name, until));
  TimePoint sent = BootClock::now();
  const auto grant = [&] {
    return Acquired{.outcome = Acquired::Outcome::granted,
                    .hold = Hold{{name, Layout::string}, request.owner, request.hold(), "0", request.lease, sent}};
  };
  if (status.state == Status::State::free) {
    const auto set = RLOCK_TRY(client_.insist({"SET", name.text(), owner, "NX", "PX", ms}, until));
    if (set.as_text() == "OK") return grant();
    status = RLOCK_TRY(inspect(name, until));
  }
  if (status.state == Status::State::other_kind) {
    return Acquired{.outcome = Acquired::Outcome::other_kind, .instead = status.other_kind};
  }
  const HolderView* holder = status.holder();
  if (!holder) return Acquired{.expires_in = 0ms};
  if (request.heir && holder->owner == request.heir->text()) {
    return fail(Error::Code::config,
                refused_.message + "; without scripts a job cannot take the lock that it runs under");
  }
  // An earlier sending has taken it, and its time began before this call.
  if (holder->owner == owner) {
    sent = BootClock::now();
    if (RLOCK_TRY(set_time(name, owner, request.lease, Attempts::until_deadline, until))) return grant();
  }
  return Acquired{.expires_in = holder->expires_in, .holders = 1, .holder = *holder};
}

Result<Renewed> WithoutScripts::renew(const Lock& lock, const OwnerId& owner, milliseconds lease, Attempts attempts,
                                      const Until& until) {
  if (lease == 0ms) return Renewed{RenewOutcome::lease_unknown, {}, {}};
  const auto left = RLOCK_TRY(send(client_, {"PTTL", lock.name.text()}, attempts, until)).as_number().value_or(0);
  const milliseconds found(std::clamp(left, 0LL, 1LL << 53));
  // A job relies on the longer lease that it was granted.
  if (RLOCK_TRY(set_time(lock.name, owner.text(), std::max(lease, found), attempts, until))) {
    return Renewed{RenewOutcome::renewed, found, {}};
  }
  return Renewed{left == -2 ? RenewOutcome::free : RenewOutcome::other_owner, {}, {}};
}

// Long, because each of its steps, which a script takes at once, can fail in its own way.
Result<Released> WithoutScripts::release(const ReleaseRequest& request, const Until& until) {
  const LockName& name = request.lock.name;
  const std::string& owner = request.owner.text();
  // The user may once have had the right to run scripts, which have counted nested runs here. A user without the right
  // to HGET never had it.
  const auto holds = client_.insist({"HGET", name.holder_key(), "holds:" + owner}, until);
  if (holds && holds->as_number().value_or(1) > 1) {
    return fail(Error::Code::config,
                "it is held more than once, which only scripts can count, and the server refuses them now");
  }
  Released released;
  const Status status = RLOCK_TRY(inspect(name, until));
  const HolderView* holder = status.holder();
  if (!holder || holder->owner != owner) {
    released.outcome = status.state == Status::State::other_kind ? ReleaseOutcome::other_kind
                       : holder                                  ? ReleaseOutcome::other_owner
                                                                 : ReleaseOutcome::free;
    released.instead = status.other_kind;
    return released;
  }
  // A release reports that the lock was the owner's until now. The reply to this says nothing more, because the string
  // may be gone at a second sending.
  RLOCK_TRY(set_time(name, owner, std::max(request.keep, 1ms), Attempts::until_deadline, until));
  released.outcome = request.keep > 0ms ? ReleaseOutcome::kept : ReleaseOutcome::released;
  if (request.note && !request.note->fields.empty()) released.unwritten = "the server does not run scripts";
  const Wakeup& wakeup = name.wakeup();
  if (request.keep > 0ms || wakeup.way == Wakeup::Way::none) return released;
  if (wakeup.way == Wakeup::Way::push) {
    released.fault = "the server does not run scripts, which are needed to wake them";
  } else if (const auto told = client_.call({"PUBLISH", wakeup.where, wakeup.what}, until); !told) {
    released.fault = told.error().message;
  }
  return released;
}

}  // namespace rlock::lock
