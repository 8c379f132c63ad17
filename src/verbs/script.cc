// SPDX-License-Identifier: MIT
#include "verbs/script.h"

#include <algorithm>
#include <utility>

#include "lua/scripts.h"
#include "redis/slot.h"

namespace rlock::lock {
namespace {

using redis::Words;

constexpr std::size_t kLongestField = 512;
constexpr std::string_view kVerbs[] = {"rlock acquire",      "rlock renew",   "rlock release",
                                       "rlock force-unlock", "rlock inspect", "rlock raise"};

// The server does not know the script that was named, or EVALSHA is forbidden, renamed or unknown, which the error says
// with its name. Nothing was executed.
bool wants_the_whole(const Error& error) {
  const auto says = [&](std::string_view text) { return error.message.contains(text); };
  const bool refused = says("no permissions") || says("unknown command");
  return error.code == Error::Code::no_script || (refused && (says("evalsha") || says("EVALSHA")));
}

Call begin_call(redis::Client& client, Verb verb, const Lock& lock, const std::string& owner, const Until& until) {
  return Call(verb, lock, owner, client.sharded(lock.name.text(), until));
}

// The wake-up of other programs' waiters, which only string locks have. In a cluster, a script cannot reach a list in
// another slot. Its key is not declared, because a user without the right to it must be able to release. `more`: other
// arguments follow, so these must not be left out.
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

// The keys of the totals and of the history are not declared for the same reason. They are in the slot of the lock.
void add_history(Call& call, const LockName& name) { call.argument(name.totals_key()).argument(name.history_key()); }

void add_success(Call& call, const Success& success) {
  const HolderInfo& who = success.who;
  const std::string names = shortened(who.user) + "\n" + shortened(who.host) + "\n" + shortened(who.command);
  call.argument(success.once.start).argument(success.once.key).argument(success.lasts);
  call.argument(std::to_string(who.pid) + "\n" + names);
}

}  // namespace

Call::Call(Verb verb, const Lock& lock, const std::string& owner, bool sharded) {
  const lua::Script& script = lua::kScripts[static_cast<int>(verb)][static_cast<int>(lock.layout)];
  text_ = script.text;
  sha1_ = script.sha1;
  const LockName& name = lock.name;
  for (const std::string& key :
       {name.text(), name.token_key(), name.holder_key(), name.queue_key(), name.waiters_key(), name.permits_key()}) {
    this->key(key);
  }
  if (!lock.has_one_holder()) key(lock.description_key(owner));
  if (lock.layout == Layout::read_write) key(name.reader_key(owner));
  argument(std::string(kVerbs[static_cast<int>(verb)]) + (sharded ? ", sharded" : ""));
  argument(lock.channel()).argument(name.grant_channel_prefix()).argument(name.hold_key_prefix());
}

Call& Call::key(std::string key) {
  keys_.push_back(std::move(key));
  number_of_keys_ = std::to_string(keys_.size());
  return *this;
}

Call& Call::argument(std::string text) {
  arguments_.push_back(std::move(text));
  return *this;
}

Call& Call::guarded(const std::string& words) {
  if (words.empty()) return *this;
  arguments_.front() += ", guard " + words;
  return key(std::string(kEpochKey));
}

Words Call::words(std::string_view command, std::string_view script) const {
  Words words = {command, script, number_of_keys_};
  words.insert(words.end(), keys_.begin(), keys_.end());
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  return words;
}

std::string shortened(const std::string& text) { return text.substr(0, kLongestField); }

// Long, because the script has many arguments, some of which are optional.
Call acquire_call(redis::Client& client, const AcquireRequest& request, const std::string& guard, const Until& until) {
  const Lock lock = request.lock();
  const QueueRequest queueing = request.queueing.value_or(QueueRequest{});
  const HolderInfo& holder = request.holder;
  Call call = begin_call(client, Verb::acquire, lock, request.owner.text(), until);
  if (request.heir && !lock.has_one_holder()) {
    call.key(lock.description_key(request.heir->text()));
    if (lock.layout == Layout::read_write) call.key(lock.name.reader_key(request.heir->text()));
  }
  if (request.queueing) call.key(request.name.waiters_key() + ":" + request.owner.text());
  if (request.once) call.key(request.name.once_key());
  call.guarded(guard);
  std::vector<std::string> words;
  const std::string renewal = holder.renewal > 0ms ? std::to_string(holder.renewal.count()) : "";
  const std::string in_history(holder.in_history ? noun(lock.layout) : "");
  const auto add_field = [&](const char* field, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {field, shortened(value)});
  };
  for (const HolderText& said : kHolderTexts) add_field(said.name, holder.*said.text);
  add_field("pid", std::to_string(holder.pid));
  add_field("control", holder.listens ? "1" : "");
  add_field("renewal", renewal);
  if (request.queueing) {
    const std::string within = holder.within.text_of_inner(AncestorLocks::kLongestText);
    if (!within.empty()) words.insert(words.end(), {"within", within});
    add_field("stays", holder.stays ? "1" : "");
  }
  add_field("history", in_history);  // the last one: lua/part/due.lua
  call.argument(request.owner.text())
      .argument(request.lease)
      .argument(request.hold())
      .argument(request.heir ? request.heir->text() : "")
      .argument(request.mode.text())
      .argument(static_cast<long long>(words.size()));
  for (const std::string& word : words) call.argument(word);
  if (request.queueing || request.once || request.mode.resize || request.mode.java || request.only_heir) {
    call.argument((request.mode.resize ? 1 : 0) + (request.mode.java ? 2 : 0))
        .argument(request.queueing ? 1 : 0)
        .argument(queueing.place)
        .argument(queueing.priority)
        .argument(queueing.most ? std::to_string(*queueing.most) : "")
        .argument(queueing.replace ? 1 : 0)
        .argument(request.only_heir ? 1 : 0);
  }
  if (request.once) call.argument(request.once->text());
  return call;
}

std::vector<Call> renew_calls(redis::Client& client, std::span<const Hold> holds, milliseconds lease, Guard guard,
                              const Until& until) {
  const std::string words = guard_words(client, guard);
  std::vector<Call> calls;
  for (const Hold& hold : holds) {
    calls.push_back(begin_call(client, Verb::renew, hold.lock, hold.owner.text(), until));
    calls.back().guarded(words).argument(hold.owner.text()).argument(lease);
    if (lease > 0ms && hold.lease >= lease && !hold.in_history) calls.back().argument("granted");
  }
  return calls;
}

Call release_call(redis::Client& client, const ReleaseRequest& request, const std::string& id, milliseconds remember,
                  const Until& until) {
  const LockName& name = request.lock.name;
  Call call = begin_call(client, Verb::release, request.lock, request.owner.text(), until);
  call.key(name.hold_key_prefix() + id + ":released");
  call.argument(request.owner.text()).argument(request.hold_id).argument(request.keep).argument(remember);
  add_wakeup(call, client, request.lock, request.note != nullptr);
  if (request.note) {
    add_history(call, name);
    const auto& success = request.note->success;
    call.argument((success ? "+" : request.note->only_if_held ? "-" : "") + request.note->total);
    if (success) add_success(call, *success);
    for (const std::string& word : request.note->fields) call.argument(word);
  }
  return call;
}

Call force_unlock_call(redis::Client& client, const Lock& lock, const OwnerId& owner, const HistoryNote* note,
                       const Until& until) {
  Call call = begin_call(client, Verb::force_unlock, lock, owner.text(), until);
  call.argument(owner.text());
  add_wakeup(call, client, lock, note != nullptr);
  if (note) {
    add_history(call, lock.name);
    for (const std::string& word : note->fields) call.argument(word);
  }
  return call;
}

Call raise_call(redis::Client& client, const Hold& hold, const Until& until) {
  Call call = begin_call(client, Verb::raise, hold.lock, hold.owner.text(), until);
  call.argument(hold.owner.text()).argument(hold.token);
  return call;
}

Call inspect_call(redis::Client& client, const Lock& lock, const Until& until) {
  return begin_call(client, Verb::inspect, lock, "", until);
}

Result<long long> publish_request_to_stop(redis::Client& client, const LockName& name, const OwnerId& owner,
                                          const std::string& by, const Until& until) {
  const std::string channel = name.control_channel(), message = owner.text() + "\n" + by;
  const bool sharded = client.sharded(channel, until);
  const auto heard = RLOCK_TRY(client.insist({sharded ? "SPUBLISH" : "PUBLISH", channel, message}, until)).as_number();
  if (!heard) return client.unexpected_reply("PUBLISH");
  return *heard;
}

Result<redis::Reply> send(redis::Client& client, const Call& call, Attempts attempts, const Until& until) {
  const auto send_words = [&](const Words& words) {
    return attempts == Attempts::one ? client.call(words, until) : client.insist(words, until);
  };
  if (auto refused = client.no_scripts(call.first_key())) return std::unexpected(*std::move(refused));
  auto reply = send_words(call.by_sha1());
  if (reply || !wants_the_whole(reply.error())) return reply;
  // A server that knew the script may have executed the first sending before it was restarted.
  const bool maybe_executed = reply.error().maybe_executed;
  reply = send_words(call.as_a_whole());
  if (!reply && maybe_executed) reply.error().maybe_executed = true;
  return reply;
}

// A second exchange sends the whole scripts that the first one shows to be needed. Its branches are the results of the
// first one.
std::vector<Result<redis::Reply>> send_all(redis::Client& client, std::span<const Call> calls, const Until& until) {
  if (std::ranges::any_of(calls, [&](const Call& call) { return client.no_scripts(call.first_key()).has_value(); })) {
    std::vector<Result<redis::Reply>> one_by_one;
    for (const Call& call : calls) one_by_one.push_back(send(client, call, Attempts::one, until));
    return one_by_one;
  }
  std::vector<Words> by_sha1, as_a_whole;
  for (const Call& call : calls) by_sha1.push_back(call.by_sha1());
  auto results = client.call_all(by_sha1, until);
  const auto wanting = [](const Result<redis::Reply>& one) { return !one && wants_the_whole(one.error()); };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (wanting(results[i])) as_a_whole.push_back(calls[i].as_a_whole());
  }
  if (as_a_whole.empty()) return results;
  if (until.over()) {
    // If another server has taken all the time, its error is the cause.
    Error late{Error::Code::unavailable, "no time was left to send the script"};
    for (const auto& one : results) late = !one && !wanting(one) ? one.error() : late;
    for (auto& one : results) {
      if (wanting(one)) one = std::unexpected(late);
    }
    return results;
  }
  auto second = client.call_all(as_a_whole, until);
  auto next = second.begin();
  for (auto& one : results) {
    if (wanting(one)) one = std::move(*next++);
  }
  return results;
}

}  // namespace rlock::lock
