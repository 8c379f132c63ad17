// SPDX-License-Identifier: MIT
#include "lock/verbs.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "lua/acquire_plain.lua.h"
#include "lua/acquire_shared.lua.h"
#include "lua/acquire_slots.lua.h"
#include "lua/force_unlock_plain.lua.h"
#include "lua/force_unlock_shared.lua.h"
#include "lua/force_unlock_slots.lua.h"
#include "lua/inspect_plain.lua.h"
#include "lua/inspect_shared.lua.h"
#include "lua/inspect_slots.lua.h"
#include "lua/release_plain.lua.h"
#include "lua/release_shared.lua.h"
#include "lua/release_slots.lua.h"
#include "lua/renew_plain.lua.h"
#include "lua/renew_shared.lua.h"
#include "lua/renew_slots.lua.h"

namespace rlock::lock {
namespace {

using redis::Reply;
using redis::Words;

std::unexpected<Error> unexpected_reply(std::string_view script) {
  return fail(Error::Code::protocol,
              "unexpected reply to the " + std::string(script) + " script; is something between us and Redis?");
}

// The scripts of one layout (lua/).
struct Scripts {
  std::string_view acquire, renew, release, force_unlock, inspect;
};

const Scripts& scripts_of(Layout layout) {
  static constexpr Scripts plain = {lua::acquire_plain, lua::renew_plain, lua::release_plain, lua::force_unlock_plain,
                                    lua::inspect_plain};
  static constexpr Scripts shared = {lua::acquire_shared, lua::renew_shared, lua::release_shared,
                                     lua::force_unlock_shared, lua::inspect_shared};
  static constexpr Scripts slots = {lua::acquire_slots, lua::renew_slots, lua::release_slots, lua::force_unlock_slots,
                                    lua::inspect_slots};
  return layout == Layout::plain ? plain : layout == Layout::shared ? shared : slots;
}

// What every script is given in front of its own arguments (lua/lock.lua).
class Call {
 public:
  explicit Call(const Lock& lock)
      : keys_{lock.name.text(), lock.name.token_key(), lock.name.holder_key(), lock.name.queue_key(),
              lock.name.waiters_key()},
        channel_(lock.channel()),
        grants_(lock.name.grants()),
        holds_(lock.name.holds()) {}

  // Valid as long as this and the arguments are.
  Words words(std::string_view script, std::initializer_list<std::string_view> arguments) const {
    Words words = {"EVAL", script, "5"};
    words.insert(words.end(), std::begin(keys_), std::end(keys_));
    words.insert(words.end(), {channel_, grants_, holds_});
    words.insert(words.end(), arguments);
    return words;
  }

 private:
  std::string keys_[5], channel_, grants_, holds_;
};

// A reply of a shape that no script has: nobody knows what was executed, nor whether the next reply is the right one.
template <class T>
Result<T> checked(redis::Client& client, Result<T> read) {
  if (read || read.error().code != Error::Code::protocol) return read;
  client.disconnect();
  read.error().maybe_executed = true;
  return read;
}

// Numbers are untrusted, too. Cut like this, sums and differences of a few of them are no overflow; scripts know no
// larger ones, because Lua counts in doubles.
std::optional<long long> number_of(const Reply& reply) {
  constexpr long long most = 1LL << 53;
  const auto number = reply.as_number();
  return number ? std::optional(std::clamp(*number, -most, most)) : std::nullopt;
}

// How many there are of something.
std::optional<long long> count_of(const Reply& reply) {
  const auto number = number_of(reply);
  return number ? std::optional(std::max(*number, 0LL)) : std::nullopt;
}

// -1 is "never".
std::optional<milliseconds> ttl_of(const Reply& reply) {
  const auto ttl = number_of(reply);
  if (!ttl || *ttl < 0) return {};
  return milliseconds(*ttl);
}

// Of {'other-kind', what} and {'other-kind', type, ttl, guess}.
OtherKind other_kind_of(const Reply& reply) {
  return {.what = reply.at(1).as_text(),
          .foreign = reply.elements.size() > 2,
          .expires_in = ttl_of(reply.at(2)),
          .guess = reply.at(3).as_text()};
}

// A holder's description is cut to a size that cannot burden the server.
std::string shortened(const std::string& text) { return text.substr(0, 512); }

Result<Released> read_release(const Reply& reply) {
  Released released;
  const std::string outcome = reply.at(0).as_text();
  if (outcome == "released") {
    released.outcome = ReleaseOutcome::released;
  } else if (outcome == "kept") {
    released.outcome = ReleaseOutcome::kept;
  } else if (outcome == "other-owner") {
    released.outcome = ReleaseOutcome::other_owner;
  } else if (outcome == "other-kind") {
    released.outcome = ReleaseOutcome::other_kind;
    released.instead = other_kind_of(reply);
    return released;
  } else if (outcome != "free") {
    return unexpected_reply("release");
  }
  released.unfinished = reply.at(3).as_number() == 1;
  if (outcome == "free" || outcome == "other-owner") {
    released.token = reply.at(1).as_text();
    return released;
  }
  released.holds_left = reply.at(1).as_number().value_or(0);
  released.fault = reply.at(2).as_text();
  return released;
}

// For how long the server remembers that it has executed a release: until that is sent again no more, or for an hour.
std::string remembered_for(const Until& until) {
  return std::to_string(std::min<milliseconds>(rlock::until(until.deadline) + 1s, 1h).count());
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
  return number_of(Reply{.kind = Reply::Kind::string, .integer = 0, .text = text, .elements = {}});
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

bool is_access(const std::string& mode) { return mode == "read" || mode == "write"; }

// What lua/describe.lua says of a holder. The description may be left from somebody whose lock was broken or ran out;
// that of a permit is found by its id, and knows the whole owner id.
Holding holding_of(const Reply& entry, Layout layout, milliseconds now) {
  Holding holding{.owner = entry.at(0).as_text(),
                  .mode = is_access(entry.at(1).as_text()) ? entry.at(1).as_text() : ""};
  holding.holds = count_of(entry.at(2)).value_or(0);
  holding.expires_in = ttl_of(entry.at(3));
  Fields known = fields_of(entry, 4);
  if (layout == Layout::slots && !known["owner"].empty()) holding.owner = known["owner"];
  if (known["owner"] != holding.owner) return holding;
  holding.described = true;
  holding.who = holder_of(known);
  holding.token = known["token"];
  if (const auto since = number_in(known["since"])) {
    holding.since = milliseconds(*since);
    holding.held_for = std::max<milliseconds>(now - *holding.since, 0ms);
  }
  if (const auto lease = number_in(known["lease"])) holding.lease = milliseconds(*lease);
  return holding;
}

Result<Acquired> read_acquire(const Reply& reply, const AcquireRequest& request, TimePoint sent) {
  const Lock lock{request.name, request.mode.layout()};
  Acquired acquired;
  const std::string outcome = reply.at(0).as_text();
  if (outcome == "granted") {
    auto owner = OwnerId::parse(reply.at(1).as_text());
    const auto token = reply.at(2).as_number();
    if (!owner || !token || *token <= 0) return unexpected_reply("acquire");
    if (*owner != request.owner && owner.value() != request.heir) {
      return fail(Error::Code::protocol, "the server says that it has granted the lock to an owner who did not ask, " +
                                             in_quotes(owner->text()) + "; is something between us and Redis?");
    }
    acquired.outcome = Acquired::Outcome::granted;
    acquired.hold = Hold{lock, *owner, request.hold(), std::to_string(*token), request.lease, sent};
  } else if (outcome == "held") {
    acquired.expires_in = ttl_of(reply.at(1));
    acquired.ahead = count_of(reply.at(2));
    acquired.place = reply.at(3).as_text();
    if (reply.at(7).as_number() == 1) acquired.other_channel = lock.channel() + ":" + request.owner.text();
    acquired.holders = count_of(reply.at(5)).value_or(0);
    if (!reply.at(6).elements.empty()) {
      acquired.holder = holding_of(reply.at(6), lock.layout, milliseconds(number_of(reply.at(4)).value_or(0)));
    }
  } else if (outcome == "queue-full") {
    acquired.outcome = Acquired::Outcome::queue_full;
    acquired.number = count_of(reply.at(1)).value_or(0);
  } else if (outcome == "replaced") {
    acquired.outcome = Acquired::Outcome::replaced;
    acquired.by = escaped(reply.at(1).as_text(), 200);
  } else if (outcome == "other-kind") {
    acquired.outcome = Acquired::Outcome::other_kind;
    acquired.instead = other_kind_of(reply);
  } else if (outcome == "other-slots") {
    acquired.outcome = Acquired::Outcome::other_slots;
    acquired.number = count_of(reply.at(1)).value_or(0);
  } else if (outcome == "no-upgrade") {
    acquired.outcome = Acquired::Outcome::no_upgrade;
  } else if (outcome == "no-token") {
    return fail(Error::Code::wrong_kind,
                request.name.display() + ": " + escaped(request.name.token_key()) +
                    " holds no fencing token (a number below 2^53), so that no token can follow it; set that key to "
                    "the largest token that was ever granted, or delete it if nobody checks tokens");
  } else {
    return unexpected_reply("acquire");
  }
  return acquired;
}

}  // namespace

std::string display(std::span<const Hold> holds) {
  std::string text;
  for (const Hold& hold : holds) text += (text.empty() ? "" : ", ") + hold.name().display();
  return text;
}

TimePoint oldest(std::span<const Hold> holds) { return std::ranges::min(holds, {}, &Hold::sent).sent; }

namespace {

// Which key it is that holds a value of another type, and what to do about it. The lock's own is spoken of elsewhere.
void explain(redis::Client& client, const Lock& lock, Error& error, const Until& until) {
  const std::pair<std::string, std::string_view> keys[] = {{lock.name.holder_key(), "hash"},
                                                           {lock.name.queue_key(), "zset"},
                                                           {lock.name.waiters_key(), "hash"}};
  for (const auto& [key, right] : keys) {
    const auto type = client.insist({"TYPE", key}, until);
    if (!type) return;
    if (type->as_text() == right || type->as_text() == "none") continue;
    error.message = lock.name.display() + ": the key " + escaped(key) + ", which only rlock uses, is a " +
                    escaped(type->as_text(), 20) +
                    " that something else has put there; delete it: no lock is lost by that";
    return;
  }
}

}  // namespace

Result<Acquired> acquire(redis::Client& client, const AcquireRequest& request, const Until& until) {
  const std::string lease = std::to_string(request.lease.count());
  const std::string hold_id = request.hold();
  const std::string pid = std::to_string(request.holder.pid);
  const Queueing queueing = request.queueing.value_or(Queueing{});
  const std::string priority = std::to_string(queueing.priority),
                    most = queueing.most ? std::to_string(*queueing.most) : "";
  const Lock lock{request.name, request.mode.layout()};
  const Call call(lock);
  const std::string mode = request.mode.text();
  const std::string slots = std::to_string((request.mode.resize ? 1 : 0) + (request.mode.java ? 2 : 0));
  const std::string host = shortened(request.holder.host), user = shortened(request.holder.user),
                    command = shortened(request.holder.command), reason = shortened(request.holder.reason);
  const Words words =
      call.words(scripts_of(lock.layout).acquire, {request.owner.text(),
                                                   lease,
                                                   hold_id,
                                                   request.heir ? std::string_view(request.heir->text()) : "",
                                                   mode,
                                                   slots,
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
  auto reply = client.insist(words, until);
  while (reply && reply->at(0).as_text() == "again") {
    if (until.over()) return Acquired{.expires_in = 0ms};
    reply = client.insist(words, until);
  }
  if (!reply && reply.error().code == Error::Code::wrong_kind) explain(client, lock, reply.error(), until);
  return checked(client, read_acquire(RLOCK_TRY(std::move(reply)), request, sent));
}

namespace {

Result<Renewed> read_renewal(const Reply& reply) {
  const std::string outcome = reply.at(0).as_text();
  if (outcome == "renewed") {
    const auto found = number_of(reply.at(1));
    if (!found) return unexpected_reply("renew");
    // It may have been told never to expire.
    return Renewed{RenewOutcome::renewed, *found < 0 ? milliseconds(INT64_MAX / 2) : milliseconds(*found), {}};
  }
  if (outcome == "free") return Renewed{RenewOutcome::free, {}, {}};
  if (outcome == "other-owner") return Renewed{RenewOutcome::other_owner, {}, {}};
  if (outcome == "other-kind") return Renewed{RenewOutcome::other_kind, {}, other_kind_of(reply)};
  if (outcome == "lease-unknown") return Renewed{RenewOutcome::lease_unknown, {}, {}};
  return unexpected_reply("renew");
}

}  // namespace

Result<Renewed> renew(redis::Client& client, const Lock& lock, const OwnerId& owner, milliseconds lease,
                      Attempts attempts, const Until& until) {
  const Call call(lock);
  const std::string lease_ms = std::to_string(lease.count());
  const Words words = call.words(scripts_of(lock.layout).renew, {owner.text(), lease_ms});
  const bool once = attempts == Attempts::one;
  return checked(client, read_renewal(RLOCK_TRY(once ? client.call(words, until) : client.insist(words, until))));
}

Result<AllRenewed> renew_all(redis::Client& client, std::span<const Hold> holds, milliseconds lease,
                             const Until& until) {
  const std::string lease_ms = std::to_string(lease.count());
  std::vector<Call> calls;
  std::vector<Words> commands;
  for (const Hold& hold : holds) calls.emplace_back(hold.lock);
  for (std::size_t i = 0; i < holds.size(); ++i) {
    commands.push_back(calls[i].words(scripts_of(holds[i].lock.layout).renew, {holds[i].owner.text(), lease_ms}));
  }
  const auto replies = RLOCK_TRY(client.call_all(commands, until));
  AllRenewed all{{RenewOutcome::renewed, milliseconds::max(), {}}, 0};
  for (std::size_t i = 0; i < holds.size(); ++i) {
    const Renewed renewed = RLOCK_TRY(checked(client, read_renewal(replies.at(i))));
    if (renewed.outcome != RenewOutcome::renewed) return AllRenewed{renewed, i};
    all.found = std::min(all.found, renewed.found);
  }
  return all;
}

namespace {

// Others may wait for their release; waiters and newcomers do the rest.
constexpr milliseconds kGoOn = 300ms;

// A release that found more to do than one call may take goes on with it in the name of nobody. What it was to release
// is released, whatever comes of this.
void go_on(redis::Client& client, const Lock& lock, const Until& until) {
  const Call call(lock);
  const std::string nobody = OwnerId::fresh().text();
  const Words words = call.words(scripts_of(lock.layout).release, {nobody, nobody, "0", nobody, "0"});
  for (bool more = true; more && !until.over();) {
    const auto reply = client.call(words, until);
    more = reply && reply->at(3).as_number() == 1;
  }
}

}  // namespace

Result<Released> release(redis::Client& client, const Lock& lock, const OwnerId& owner, const std::string& hold_id,
                         const Until& until, milliseconds keep) {
  const Call call(lock);
  const std::string keep_ms = std::to_string(keep.count()), request = random_uuid(), remember = remembered_for(until);
  const Words words =
      call.words(scripts_of(lock.layout).release, {owner.text(), hold_id, keep_ms, request, remember});
  const Released released = RLOCK_TRY(read_release(RLOCK_TRY(client.insist(words, until))));
  if (released.unfinished) go_on(client, lock, until.at_most(kGoOn));
  return released;
}

Result<Released> release(redis::Client& client, const Hold& hold, const Until& until, milliseconds keep) {
  return release(client, hold.lock, hold.owner, hold.id, until, keep);
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
  const auto heard = RLOCK_TRY(client.insist({"PUBLISH", channel, message}, until)).as_number();
  if (!heard) return fail(Error::Code::protocol, "unexpected reply to PUBLISH");
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

Result<Released> force_unlock(redis::Client& client, const Lock& lock, const OwnerId& owner, const Until& until) {
  const Call call(lock);
  const Released released = RLOCK_TRY(read_release(
      RLOCK_TRY(client.insist(call.words(scripts_of(lock.layout).force_unlock, {owner.text()}), until))));
  if (released.unfinished) go_on(client, lock, until);
  return released;
}

Result<Status> inspect(redis::Client& client, const LockName& name, const Until& until) {
  Status status{.lock = {name}};
  Reply reply;
  // Most are plain; the others say what they are.
  for (int asked = 0; asked < 2; ++asked) {
    const Call call(status.lock);
    reply = RLOCK_TRY(client.insist(call.words(scripts_of(status.lock.layout).inspect, {}), until));
    if (reply.at(0).as_text() == "lock") break;
    if (reply.at(0).as_text() != "other-kind") return unexpected_reply("inspect");
    status.other_kind = other_kind_of(reply);
    const auto layout = status.other_kind.layout();
    if (!layout) break;
    status.lock.layout = *layout;
  }
  if (reply.at(0).as_text() != "lock") {
    status.state = Status::State::other_kind;
    return status;
  }
  status.other_kind = {};

  const auto now = count_of(reply.at(2));
  if (!now) return unexpected_reply("inspect");
  status.token = reply.at(3).as_text();
  status.slots = count_of(reply.at(4)).value_or(0);
  status.number = count_of(reply.at(5)).value_or(0);
  for (const Reply& holder : reply.at(6).elements) {
    status.holders.push_back(holding_of(holder, status.lock.layout, milliseconds(*now)));
  }
  status.waiting = count_of(reply.at(7)).value_or(0);
  for (const Reply& id : reply.at(9).elements) status.fair_queue.push_back(id.as_text());
  for (const Reply& waiter : reply.at(8).elements) {
    Fields known = fields_of(waiter, 2);
    const long long since = std::clamp(number_of(waiter.at(0)).value_or(*now), 0LL, *now);
    const std::string mode = waiter.at(1).as_text();
    status.queue.push_back({holder_of(known), is_access(mode) ? mode : "", milliseconds(*now - since)});
  }
  if (status.number == 0) return status;

  status.state = Status::State::held;
  return status;
}

namespace {

// How much memory a list of locks may take, about: a server can send names and holders without end.
constexpr std::size_t kLongestList = std::size_t{32} << 20;

std::size_t size_of(const Holder& who) {
  return who.host.size() + who.user.size() + who.command.size() + who.reason.size();
}

std::size_t size_of(const Status& status) {
  std::size_t size = sizeof status + status.name().text().size();
  for (const Holding& one : status.holders) size += sizeof one + one.owner.size() + one.token.size() + size_of(one.who);
  for (const Waiting& one : status.queue) size += sizeof one + size_of(one.who);
  for (const std::string& id : status.fair_queue) size += sizeof id + id.size();
  return size;
}

constexpr std::string_view kAskByName = "; ask for locks by their names";

// What ends a listing that would not end by itself.
Result<void> within_limits(std::size_t size, const Until& end) {
  if (size > kLongestList) {
    return fail(Error::Code::protocol, "the list of locks takes more than " + std::to_string(kLongestList >> 20) +
                                           " MiB" + std::string(kAskByName));
  }
  if (end.over()) {
    return fail(Error::Code::unavailable, "looking at all keys takes too long" + std::string(kAskByName));
  }
  return {};
}

// SCAN finds keys that a user has no right to: those of another team. The texts are those of Redis 7.0 and of 7.4.
bool is_of_others(const Error& error) {
  return error.code == Error::Code::denied && (error.message.find("the keys used as arguments") != std::string::npos ||
                                               error.message.find("to access a key") != std::string::npos);
}

}  // namespace

Result<std::vector<Status>> inspect_all(redis::Client& client, milliseconds exchange) {
  const Until end = Until{}.at_most(kLongestLooks * exchange);
  std::size_t size = 0;
  std::set<LockName> names;
  const std::string pattern = LockName::holder_pattern();
  std::string cursor = "0";
  do {
    const Reply reply =
        RLOCK_TRY(client.insist({"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"}, end.at_most(exchange)));
    cursor = reply.at(0).as_text();
    if (cursor.empty()) return fail(Error::Code::protocol, "unexpected reply to SCAN");
    for (const Reply& key : reply.at(1).elements) {
      auto name = LockName::of_holder_key(key.as_text());
      if (name && names.insert(std::move(*name)).second) size += sizeof(Status) + key.text.size();
    }
    RLOCK_TRY(within_limits(size, end));
  } while (cursor != "0");

  std::vector<Status> all;
  for (const LockName& name : names) {
    auto looked = inspect(client, name, end.at_most(exchange));
    if (!looked && is_of_others(looked.error())) continue;
    Status status = RLOCK_TRY(std::move(looked));
    // A holder's description may outlive its lock.
    if (status.state != Status::State::held) continue;
    size += size_of(status);
    all.push_back(std::move(status));
    RLOCK_TRY(within_limits(size, end));
  }
  return all;
}

}  // namespace rlock::lock
