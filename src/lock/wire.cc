// SPDX-License-Identifier: MIT
#include "lock/wire.h"

#include <utility>

#include "base/text.h"
#include "lock/replies.h"
#include "redis/slot.h"

namespace rlock::lock::wire {
namespace {

using redis::Reply;

// A reply of a shape that no script has: nobody knows what was executed, nor whether the next reply is the right one.
template <class T>
Result<T> checked(redis::Client& client, Result<T> read) {
  if (read || read.error().code != Error::Code::protocol) return read;
  client.disconnect();
  read.error().maybe_executed = true;
  return read;
}

Call begin(redis::Client& client, Verb verb, const Lock& lock, const std::string& owner, const Until& until) {
  return Call(verb, lock, owner, client.sharded(lock.name.text(), until));
}

// Which key it is that holds a value of another type, and what to do about it. The lock's own is spoken of elsewhere.
void explain(redis::Client& client, const Lock& lock, Error& error, const Until& until) {
  const std::pair<std::string, std::string_view> keys[] = {
      {lock.name.holder_key(), "hash"}, {lock.name.queue_key(), "zset"}, {lock.name.waiters_key(), "hash"}};
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

std::string shortened(const std::string& text) { return text.substr(0, 512); }

Result<std::optional<Acquired>> acquire(redis::Client& client, const AcquireRequest& request, TimePoint sent,
                                        Attempts attempts, const Until& until) {
  const Lock lock{request.name, request.mode.layout()};
  const QueueRequest queueing = request.queueing.value_or(QueueRequest{});
  const HolderInfo& holder = request.holder;
  Call call = begin(client, Verb::acquire, lock, request.owner.text(), until);
  if (request.heir && !lock.has_one_holder()) {
    call.key(lock.description_key(request.heir->text()));
    if (lock.layout == Layout::read_write) call.key(lock.name.reader_key(request.heir->text()));
  }
  if (request.queueing) call.key(request.name.waiters_key() + ":" + request.owner.text());
  std::vector<std::string> words;
  const std::string renewal = holder.renewal > 0ms ? std::to_string(holder.renewal.count()) : "";
  const std::string in_history(holder.in_history ? noun(lock.layout) : "");
  const std::pair<const char*, std::string> fields[] = {
      {"host", holder.host},       {"pid", std::to_string(holder.pid)}, {"user", holder.user},
      {"command", holder.command}, {"reason", holder.reason},           {"control", holder.listens ? "1" : ""},
      {"renewal", renewal},        {"history", in_history}};  // that at the end: lua/part/due.lua
  for (const auto& [field, value] : fields) {
    if (!value.empty()) words.insert(words.end(), {field, shortened(value)});
  }
  call.argument(request.owner.text())
      .argument(request.lease)
      .argument(request.hold())
      .argument(request.heir ? request.heir->text() : "")
      .argument(request.mode.text())
      .argument(words.size());
  for (const std::string& word : words) call.argument(word);
  if (request.queueing || request.mode.resize || request.mode.java) {
    call.argument((request.mode.resize ? 1 : 0) + (request.mode.java ? 2 : 0))
        .argument(request.queueing ? 1 : 0)
        .argument(queueing.place)
        .argument(queueing.priority)
        .argument(queueing.most ? std::to_string(*queueing.most) : "")
        .argument(queueing.replace ? 1 : 0);
  }
  auto reply = send(client, call, attempts, until);
  if (!reply && reply.error().code == Error::Code::wrong_kind) explain(client, lock, reply.error(), until);
  return checked(client, read_acquire(RLOCK_TRY(std::move(reply)), request, sent));
}

namespace {

std::vector<Call> renewals(redis::Client& client, std::span<const LockOf> locks, milliseconds lease,
                           const Until& until) {
  std::vector<Call> calls;
  for (const LockOf& one : locks) {
    calls.push_back(begin(client, Verb::renew, one.lock, one.owner.text(), until));
    calls.back().argument(one.owner.text()).argument(lease);
  }
  return calls;
}

Result<RenewReply> read_one(redis::Client& client, const Result<Reply>& reply) {
  if (!reply) return std::unexpected(reply.error());
  return checked(client, read_renewal(*reply));
}

}  // namespace

std::vector<Result<RenewReply>> renew_each(redis::Client& client, std::span<const LockOf> locks, milliseconds lease,
                                           const Until& until) {
  std::vector<Result<RenewReply>> renewed;
  for (const auto& reply : send_all(client, renewals(client, locks, lease, until), until)) {
    renewed.push_back(read_one(client, reply));
  }
  return renewed;
}

Result<std::vector<RenewReply>> renew(redis::Client& client, std::span<const LockOf> locks, milliseconds lease,
                                      Attempts attempts, const Until& until) {
  std::vector<RenewReply> renewed;
  if (attempts == Attempts::one) {
    for (auto& one : renew_each(client, locks, lease, until)) renewed.push_back(RLOCK_TRY(std::move(one)));
    return renewed;
  }
  for (const Call& call : renewals(client, locks, lease, until)) {
    renewed.push_back(RLOCK_TRY(read_one(client, send(client, call, attempts, until))));
  }
  return renewed;
}

namespace {

// The wake-up of other programs' waiters, of which only strings have any. In a cluster the list of another slot is out of a
// script's reach. No key of it is declared: a user may lack the right to it, and must be able to release.
// `more` follows: then there are words for it in any case.
void add_wakeup(Call& call, const redis::Client& client, const Lock& lock, bool more) {
  if (lock.layout != Layout::string) return;
  const LockName& name = lock.name;
  const Wakeup& wakeup = name.wakeup();
  const bool away = client.address().slots && redis::slot_of(wakeup.where) != redis::slot_of(name.text());
  const bool none = wakeup.way == Wakeup::Way::none || (wakeup.way == Wakeup::Way::push && away);
  if (none && !more) return;
  call.argument(none ? "" : wakeup.way == Wakeup::Way::push ? "lpush" : "publish");
  call.argument(wakeup.where).argument(wakeup.what).argument(wakeup.lasts);
}

// The keys of the totals and of the history, undeclared for the same reason. They are in the slot of the lock.
void add_history(Call& call, const LockName& name) {
  call.argument(name.totals_key()).argument(name.history_key());
}

Call release_call(redis::Client& client, const Lock& lock, const ReleaseArguments& arguments, const Until& until) {
  Call call = begin(client, Verb::release, lock, arguments.owner, until);
  call.key(lock.name.hold_key_prefix() + arguments.request + ":released");
  call.argument(arguments.owner).argument(arguments.hold).argument(arguments.keep).argument(arguments.remember);
  add_wakeup(call, client, lock, arguments.note != nullptr);
  if (arguments.note) {
    add_history(call, lock.name);
    call.argument((arguments.note->only_if_held ? "-" : "") + arguments.note->total);
    for (const std::string& word : arguments.note->fields) call.argument(word);
  }
  return call;
}

}  // namespace

Result<Released> release(redis::Client& client, const Lock& lock, const ReleaseArguments& arguments, Attempts attempts,
                         const Until& until) {
  const Call call = release_call(client, lock, arguments, until);
  return checked(client, read_release(RLOCK_TRY(send(client, call, attempts, until))));
}

Result<Released> force_unlock(redis::Client& client, const Lock& lock, const OwnerId& owner, const Until& until,
                              const HistoryNote* note) {
  Call call = begin(client, Verb::force_unlock, lock, owner.text(), until);
  call.argument(owner.text());
  add_wakeup(call, client, lock, note != nullptr);
  if (note) {
    add_history(call, lock.name);
    for (const std::string& word : note->fields) call.argument(word);
  }
  return checked(client, read_release(RLOCK_TRY(send(client, call, Attempts::until_deadline, until))));
}

Result<bool> raise_all(redis::Client& client, std::span<const Hold> holds, const Until& until) {
  std::vector<Call> calls;
  for (const Hold& hold : holds) {
    calls.push_back(begin(client, Verb::raise, hold.lock, hold.owner.text(), until));
    calls.back().argument(hold.owner.text()).argument(hold.token);
  }
  bool raised = true;
  const auto replies = send_all(client, calls, until);
  for (std::size_t i = 0; i < holds.size(); ++i) {
    const Reply reply = RLOCK_TRY(replies.at(i));
    raised = RLOCK_TRY(checked(client, read_raise(reply, holds[i].lock))) && raised;
  }
  return raised;
}

Result<void> give_back_all(redis::Client& client, std::span<const AcquireRequest> requests, const Until& until) {
  std::vector<Call> calls;
  for (const AcquireRequest& request : requests) {
    const Lock lock{request.name, request.mode.layout()};
    for (const OwnerId* owner : {&request.owner, request.heir ? &*request.heir : nullptr}) {
      if (!owner) continue;
      calls.push_back(release_call(client, lock, {owner->text(), request.hold(), {}, owner->text(), {}}, until));
    }
  }
  for (const auto& reply : send_all(client, calls, until)) RLOCK_TRY(reply);
  return {};
}

Result<Status> inspect(redis::Client& client, const Lock& lock, const Until& until) {
  const Call call = begin(client, Verb::inspect, lock, "", until);
  return checked(client, read_inspection(RLOCK_TRY(send(client, call, Attempts::until_deadline, until)), lock));
}

std::vector<Result<Status>> inspect_each(redis::Client& client, std::span<const LockName> names, const Until& until) {
  std::vector<Call> calls;
  for (const LockName& name : names) calls.push_back(begin(client, Verb::inspect, {name}, "", until));
  std::vector<Result<Status>> all;
  const auto replies = send_all(client, calls, until);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (replies[i]) all.push_back(checked(client, read_inspection(*replies[i], {names[i]})));
    if (!replies[i]) all.push_back(std::unexpected(replies[i].error()));
  }
  return all;
}

}  // namespace rlock::lock::wire
