// SPDX-License-Identifier: MIT
#include "lock/verbs.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "lua/acquire.lua.h"
#include "lua/force_unlock.lua.h"
#include "lua/inspect.lua.h"
#include "lua/release.lua.h"
#include "lua/renew.lua.h"

namespace rlock::lock {
namespace {

using redis::Reply;
using redis::Words;

std::unexpected<Error> unexpected_reply(std::string_view script) {
  return fail(Error::Code::protocol,
              "unexpected reply to the " + std::string(script) + " script; is something between us and Redis?");
}

// What every script is given in front of its own arguments (lua/queue.lua).
class Call {
 public:
  explicit Call(const LockName& name)
      : keys_{name.text(), name.token_key(), name.holder_key(), name.queue_key(), name.waiters_key()},
        channel_(name.channel()),
        grants_(name.grants()) {}

  // Valid as long as this and the arguments are.
  Words words(std::string_view script, std::initializer_list<std::string_view> arguments) const {
    Words words = {"EVAL", script, "5"};
    words.insert(words.end(), std::begin(keys_), std::end(keys_));
    words.insert(words.end(), {channel_, grants_});
    words.insert(words.end(), arguments);
    return words;
  }

 private:
  std::string keys_[5], channel_, grants_;
};

// -1 is "never".
std::optional<milliseconds> ttl_of(const Reply& reply) {
  const auto ttl = reply.as_number();
  if (!ttl || *ttl < 0) return {};
  return milliseconds(*ttl);
}

// A holder's description is cut to a size that cannot burden the server.
std::string shortened(const std::string& text) { return text.substr(0, 512); }

Result<Released> read_release(const Reply& reply, bool after_lost_reply) {
  Released released{.after_lost_reply = after_lost_reply};
  const std::string outcome = reply.at(0).as_text();
  if (outcome == "released") {
    released.outcome = ReleaseOutcome::released;
  } else if (outcome == "kept") {
    released.outcome = ReleaseOutcome::kept;
  } else if (outcome == "other-owner") {
    released.outcome = ReleaseOutcome::other_owner;
  } else if (outcome == "other-kind") {
    released.outcome = ReleaseOutcome::other_kind;
  } else if (outcome != "free") {
    return unexpected_reply("release");
  }
  released.holds_left = reply.at(1).as_number().value_or(0);
  released.fault = reply.at(2).as_text();
  return released;
}

// Sends a release until it is answered, and knows whether an earlier sending may have been executed.
Result<Released> insist_on_release(redis::Client& client, const Words& words, const Until& until) {
  auto first = client.call(words, until);
  if (first) return read_release(*first, false);
  const bool lost = first.error().maybe_executed;
  if (first.error().code != Error::Code::unavailable || until.over()) return std::unexpected(std::move(first).error());
  auto again = client.insist(words, until);
  if (again) return read_release(*again, lost);
  again.error().maybe_executed |= lost;
  return std::unexpected(std::move(again).error());
}

}  // namespace

Result<Acquired> acquire(redis::Client& client, const AcquireRequest& request, const Until& until) {
  const std::string lease = std::to_string(request.lease.count());
  const std::string hold_id = request.hold();
  const std::string pid = std::to_string(request.holder.pid);
  const Queueing queueing = request.queueing.value_or(Queueing{});
  const std::string priority = std::to_string(queueing.priority),
                    most = queueing.most ? std::to_string(*queueing.most) : "";
  const Call call(request.name);
  const std::string host = shortened(request.holder.host), user = shortened(request.holder.user),
                    command = shortened(request.holder.command), reason = shortened(request.holder.reason);
  const Words words = call.words(lua::acquire, {request.owner.text(),
                                                lease,
                                                hold_id,
                                                request.heir ? std::string_view(request.heir->text()) : "",
                                                request.queueing ? "1" : "0",
                                                queueing.place,
                                                priority,
                                                most,
                                                queueing.replace ? "1" : "0",
                                                "host",
                                                host,
                                                "pid",
                                                pid,
                                                "user",
                                                user,
                                                "command",
                                                command,
                                                "reason",
                                                reason,
                                                "control",
                                                request.holder.listens ? "1" : ""});

  // Of several sendings the first may have been the one that succeeded: count from it.
  const TimePoint sent = BootClock::now();
  const Reply reply = RLOCK_TRY(client.insist(words, until));

  Acquired acquired;
  const std::string outcome = reply.at(0).as_text();
  if (outcome == "granted") {
    auto owner = OwnerId::parse(reply.at(1).as_text());
    if (!owner || !reply.at(2).as_number()) return unexpected_reply("acquire");
    acquired.outcome = Acquired::Outcome::granted;
    acquired.hold = Hold{request.name, *owner, hold_id, reply.at(2).as_text(), request.lease, sent};
  } else if (outcome == "held") {
    acquired.expires_in = ttl_of(reply.at(1));
    acquired.ahead = reply.at(2).as_number();
    acquired.place = reply.at(3).as_text();
  } else if (outcome == "queue-full") {
    acquired.outcome = Acquired::Outcome::queue_full;
    acquired.waiting = reply.at(1).as_number().value_or(0);
  } else if (outcome == "replaced") {
    acquired.outcome = Acquired::Outcome::replaced;
    acquired.replaced_by = escaped(reply.at(1).as_text(), 200);
  } else if (outcome == "other-kind") {
    acquired.outcome = Acquired::Outcome::other_kind;
    acquired.other_kind = reply.at(1).as_text();
  } else {
    return unexpected_reply("acquire");
  }
  return acquired;
}

Result<Renewed> renew(redis::Client& client, const LockName& name, const OwnerId& owner, milliseconds lease,
                      Attempts attempts, const Until& until) {
  const Call call(name);
  const std::string lease_ms = std::to_string(lease.count());
  const Words words = call.words(lua::renew, {owner.text(), lease_ms});
  const Reply reply = RLOCK_TRY(attempts == Attempts::one ? client.call(words, until) : client.insist(words, until));
  const std::string outcome = reply.at(0).as_text();
  if (outcome == "renewed") {
    const auto found = reply.at(1).as_number();
    if (!found) return unexpected_reply("renew");
    // It may have been told never to expire.
    return Renewed{RenewOutcome::renewed, *found < 0 ? milliseconds(INT64_MAX / 2) : milliseconds(*found)};
  }
  if (outcome == "free") return Renewed{RenewOutcome::free};
  if (outcome == "other-owner") return Renewed{RenewOutcome::other_owner};
  if (outcome == "other-kind") return Renewed{RenewOutcome::other_kind};
  if (outcome == "lease-unknown") return Renewed{RenewOutcome::lease_unknown};
  return unexpected_reply("renew");
}

Result<Released> release(redis::Client& client, const LockName& name, const OwnerId& owner, const std::string& hold_id,
                         const Until& until, milliseconds keep) {
  const Call call(name);
  const std::string keep_ms = std::to_string(keep.count());
  return insist_on_release(client, call.words(lua::release, {owner.text(), hold_id, keep_ms}), until);
}

Result<long long> ask_to_stop(redis::Client& client, const LockName& name, const OwnerId& owner, const std::string& by,
                              const Until& until) {
  const std::string channel = name.control_channel(), message = owner.text() + "\n" + by;
  const auto heard = RLOCK_TRY(client.insist({"PUBLISH", channel, message}, until)).as_number();
  if (!heard) return fail(Error::Code::protocol, "unexpected reply to PUBLISH");
  return *heard;
}

std::optional<std::string> asked_to_stop_by(const std::string& message, const OwnerId& owner) {
  const auto end = message.find('\n');
  if (message.substr(0, end) != owner.text()) return {};
  return end == std::string::npos ? "somebody" : escaped(message.substr(end + 1), 200);
}

Result<Released> force_unlock(redis::Client& client, const LockName& name, const OwnerId& owner, const Until& until) {
  const Call call(name);
  return insist_on_release(client, call.words(lua::force_unlock, {owner.text()}), until);
}

namespace {

// What is at the key, where it is not a plain lock. Redisson's layouts: reference in lua/README.md.
std::string other_kind_of(const std::string& type, long long fields, const Reply& owners) {
  if (type != "hash") return "a " + escaped(type, 20);
  for (std::size_t i = 0; i < owners.elements.size(); i += 2) {
    if (owners.at(i).as_text() == "mode") return "a read-write lock";
  }
  return fields == 1 ? "" : "a hash with " + std::to_string(fields) + " fields";
}

// Fields and values from `begin` on.
using Fields = std::map<std::string, std::string>;

Fields fields_of(const Reply& list, std::size_t begin) {
  Fields known;
  for (std::size_t i = begin; i + 1 < list.elements.size(); i += 2)
    known[list.at(i).as_text()] = list.at(i + 1).as_text();
  return known;
}

std::optional<long long> number_in(const std::string& text) {
  return Reply{.kind = Reply::Kind::string, .integer = 0, .text = text, .elements = {}}.as_number();
}

Holder holder_of(Fields& known) {
  return {.host = known["host"],
          .user = known["user"],
          .command = known["command"],
          .reason = known["reason"],
          .pid = static_cast<long>(number_in(known["pid"]).value_or(0)),
          .listens = known["control"] == "1",
          .ended = known["kept"] == "1"};
}

void describe(Status& status, Fields known, milliseconds now) {
  status.described = true;
  status.holder = holder_of(known);
  if (const auto since = number_in(known["since"])) {
    status.since = milliseconds(*since);
    status.held_for = std::max<milliseconds>(now - *status.since, 0ms);
  }
  if (const auto lease = number_in(known["lease"])) status.lease = milliseconds(*lease);
  if (!known["token"].empty()) status.token = known["token"];
}

}  // namespace

Result<Status> inspect(redis::Client& client, const LockName& name, const Until& until) {
  const Call call(name);
  const Reply reply = RLOCK_TRY(client.insist(call.words(lua::inspect, {}), until));
  const auto now = reply.at(2).as_number(), fields = reply.at(4).as_number();
  if (!now || !fields) return unexpected_reply("inspect");

  Status status{.name = name};
  status.token = reply.at(3).as_text();
  status.waiting = reply.at(7).as_number().value_or(0);
  for (const Reply& waiter : reply.at(8).elements) {
    Fields known = fields_of(waiter, 1);
    const long long since = std::clamp(waiter.at(0).as_number().value_or(*now), 0LL, std::max(*now, 0LL));
    status.queue.push_back({holder_of(known), milliseconds(*now - since)});
  }
  const std::string type = reply.at(0).as_text();
  if (type == "none") return status;

  status.expires_in = ttl_of(reply.at(1));
  const Reply& owners = reply.at(5);
  status.other_kind = other_kind_of(type, *fields, owners);
  status.state = status.other_kind.empty() ? Status::State::held : Status::State::other_kind;
  if (status.state != Status::State::held) return status;

  status.owner = owners.at(0).as_text();
  status.holds = owners.at(1).as_number().value_or(0);
  Fields known = fields_of(reply.at(6), 0);
  // The holder key may be left from somebody whose lock was broken or ran out.
  if (known["owner"] == status.owner) describe(status, std::move(known), milliseconds(*now));
  return status;
}

Result<std::vector<Status>> inspect_all(redis::Client& client, milliseconds exchange) {
  std::set<LockName> names;
  const std::string pattern = LockName::holder_pattern();
  std::string cursor = "0";
  do {
    const Reply reply =
        RLOCK_TRY(client.insist({"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"}, Until{}.at_most(exchange)));
    cursor = reply.at(0).as_text();
    if (cursor.empty()) return fail(Error::Code::protocol, "unexpected reply to SCAN");
    for (const Reply& key : reply.at(1).elements) {
      if (auto name = LockName::of_holder_key(key.as_text())) names.insert(std::move(*name));
    }
  } while (cursor != "0");

  std::vector<Status> all;
  for (const LockName& name : names) all.push_back(RLOCK_TRY(inspect(client, name, Until{}.at_most(exchange))));
  // A holder's description may outlive its lock.
  std::erase_if(all, [](const Status& status) { return status.state != Status::State::held; });
  return all;
}

}  // namespace rlock::lock
