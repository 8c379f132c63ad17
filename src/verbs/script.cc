// SPDX-License-Identifier: MIT
#include "verbs/script.h"

#include "base/text.h"
#include "lua/scripts.h"
#include "redis/slot.h"
#include "verbs/lease.h"

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
  if (success.status == 0) {
    call.argument(success.once.start).argument(success.once.key);
  } else {
    call.argument(success.status).argument(kFailed + success.once.key);
  }
  call.argument(success.lasts);
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

Call& Call::guarded(const std::string& words, bool declared) {
  if (words.empty()) return *this;
  add_word("guard " + words);
  return declared ? key(std::string(kEpochKey)) : *this;
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
  call.guarded(guard, true);
  if (client.address().server.logs_in()) call.add_word("login");
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
    calls.back().guarded(words, false).argument(hold.owner.text()).argument(lease);
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

Call force_unlock_call(redis::Client& client, const Lock& lock, const HolderView& shown, const std::string& by,
                       const HistoryNote* note, const Until& until) {
  Call call = begin_call(client, Verb::force_unlock, lock, shown.owner, until);
  call.argument(shown.owner).argument(shown.begun).argument(shown.holds).argument(by);
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

namespace {

using redis::Reply;

constexpr std::size_t kLongestText = 512;

std::unexpected<Error> unexpected_reply(std::string_view script) {
  return fail(Error::Code::protocol,
              "unexpected reply to the " + std::string(script) + " script; is something between us and Redis?");
}

std::unexpected<Error> no_token(const LockName& name) {
  return fail(Error::Code::wrong_kind,
              escaped(name.token_key()) +
                  " does not contain a fencing token (a number no larger than the time in microseconds in 100 years), "
                  "so no token can follow it; set that key to "
                  "the largest token that was ever granted, or delete it if nobody checks tokens");
}

// Numbers are untrusted, too. Within these limits, sums and differences of a few of them cannot overflow; scripts do
// not send larger ones, because Lua counts in doubles.
std::optional<long long> number_of(const Reply& reply) {
  constexpr long long most = 1LL << 53;
  const auto number = reply.as_number();
  return number ? std::optional(std::clamp(*number, -most, most)) : std::nullopt;
}

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

// {'other-kind', what} or {'other-kind', type, ttl, guess}
OtherKind other_kind_of(const Reply& reply) {
  return {.what = reply.at(1).as_text(),
          .foreign = reply.elements.size() > 2,
          .expires_in = ttl_of(reply.at(2)),
          .guess = reply.at(3).as_text()};
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

// A plausible time: not negative, and before the year 6400.
std::optional<milliseconds> time_in(const std::string& text) {
  constexpr long long longest = 1LL << 47;
  const auto number = number_in(text);
  if (!number || *number < 0 || *number > longest) return {};
  return milliseconds(*number);
}

HolderInfo holder_of(Fields& known) {
  HolderInfo who{.pid = static_cast<long>(number_in(known["pid"]).value_or(0)),
                 .listens = !known["control"].empty(),
                 .ended = known["kept"] == "1",
                 .renewal = time_in(known["renewal"]).value_or(0ms),
                 .within = AncestorLocks::parse(known["within"].substr(0, AncestorLocks::kLongestText)),
                 .stays = known["stays"] == "1"};
  for (const HolderText& said : kHolderTexts) who.*said.text = known[said.name];
  return who;
}

// How many slots a waiter wants, by its mode, "SLOTS TAKEN …".
long long taken_in(const std::string& mode) {
  const auto words = split(mode, ' ');
  const auto taken = words.size() > 1 ? whole_number(words[1]) : std::nullopt;
  return taken ? std::clamp(*taken, 1LL, static_cast<long long>(kMostTaken)) : 1;
}

bool is_access(const std::string& mode) { return mode == "read" || mode == "write"; }

// A waiter that was just given the lock has, for a moment, less time than a renewal gives.
void add_renewal(HolderView& holding) {
  const milliseconds lease = holding.who.renewal;
  if (lease == 0ms || holding.who.ended || !holding.expires_in) return;
  const milliseconds ago = std::max<milliseconds>(lease - *holding.expires_in, 0ms);
  holding.renewed_ago = std::min(ago, holding.held_for.value_or(ago));
  holding.overdue = overdue_for(lease, *holding.renewed_ago);
}

// A holder as lua/part/describe.lua describes it. The description may be left over from an earlier holder. The one of a
// permit is found by the permit's id, and contains the whole owner id.
HolderView holding_of(const Reply& entry, Layout layout, milliseconds now,
                      const std::vector<std::string>& resources = {}) {
  HolderView holding{.owner = entry.at(0).as_text(),
                     .mode = is_access(entry.at(1).as_text()) ? entry.at(1).as_text() : ""};
  holding.holds = count_of(entry.at(2)).value_or(0);
  holding.expires_in = ttl_of(entry.at(3));
  Fields known = fields_of(entry, 4);
  if (layout == Layout::semaphore && !known["owner"].empty()) holding.owner = known["owner"];
  if (known["owner"] != holding.owner) {
    holding.by_set = layout == Layout::string;
    return holding;
  }
  holding.described = true;
  holding.begun = known["control"] + " " + known["newest"];
  holding.in_history = !known["history"].empty();
  holding.who = holder_of(known);
  holding.token = known["token"];
  holding.since = time_in(known["since"]);
  if (holding.since) holding.held_for = std::max<milliseconds>(now - *holding.since, 0ms);
  holding.lease = time_in(known["lease"]);
  holding.lasted = read_spans(known["lasted"]);
  if (layout == Layout::semaphore) holding.slots = Slots::read(known["slots"], resources);
  add_renewal(holding);
  return holding;
}

Result<Acquired> read_grant(const Reply& reply, const AcquireRequest& request, TimePoint sent) {
  const auto owner = OwnerId::parse(reply.at(1).as_text());
  const auto token = reply.at(2).as_number();
  if (!owner || !token || *token <= 0) return unexpected_reply("acquire");
  if (*owner != request.owner && owner.value() != request.heir) {
    return fail(Error::Code::protocol, "the server says that it has granted the lock to an owner that did not ask, " +
                                           in_quotes(owner->text()) + "; is something between us and Redis?");
  }
  Hold hold = request.granted(*owner, std::to_string(*token), sent);
  hold.slots = Slots::read(reply.at(3).as_text(), request.mode.resources);
  if (!request.mode.resources.empty() && hold.slots.resources.empty()) return unexpected_reply("acquire");
  return Acquired{.outcome = Acquired::Outcome::granted, .hold = std::move(hold)};
}

Acquired read_held(const Reply& reply, const AcquireRequest& request, const Lock& lock) {
  Acquired held{.expires_in = ttl_of(reply.at(1)), .ahead = count_of(reply.at(2)), .place = reply.at(3).as_text()};
  if (reply.at(7).as_number() == 1) held.other_channel = lock.channel() + ":" + request.owner.text();
  held.holders = count_of(reply.at(5)).value_or(0);
  if (const auto left = count_of(reply.at(8)); left.value_or(0) > 0) {
    held.back = HeldBack{milliseconds(*left), milliseconds(count_of(reply.at(9)).value_or(0)),
                         reply.at(10).as_text() == "missing"};
  }
  if (!reply.at(6).elements.empty()) {
    held.holder = holding_of(reply.at(6), lock.layout, milliseconds(number_of(reply.at(4)).value_or(0)));
  }
  return held;
}

Acquired read_succeeded(const Reply& reply, const AcquireRequest& request) {
  Acquired succeeded{.outcome = Acquired::Outcome::succeeded};
  succeeded.success = read_success(request.once ? request.once->key : "", reply.at(1).as_text());
  const auto now = time_in(reply.at(2).as_text());
  if (now && succeeded.success) succeeded.ago = std::max<milliseconds>(*now - succeeded.success->at, 0ms);
  return succeeded;
}

}  // namespace

// "<start> <until> <at> <pid>\n<user>\n<host>\n<command>"
std::optional<PastSuccess> read_success(const std::string& key, std::string_view record) {
  const auto cut = [&](char end) {
    const std::string_view part = record.substr(0, record.find(end));
    record.remove_prefix(std::min(part.size() + 1, record.size()));
    return std::string(part);
  };
  const auto start = number_in(cut(' '));
  const auto until = time_in(cut(' ')), at = time_in(cut(' '));
  const auto pid = number_in(cut('\n'));
  if (!start || !until || !at) return {};
  PastSuccess success{.key = key, .start = *start, .until = *until, .at = *at};
  success.who.pid = static_cast<long>(pid.value_or(0));
  success.who.user = cut('\n').substr(0, kLongestText);
  success.who.host = cut('\n').substr(0, kLongestText);
  success.who.command = record.substr(0, kLongestText);
  return success;
}

Result<Released> read_release(const Reply& reply) {
  Released released;
  const std::string outcome = reply.at(0).as_text();
  constexpr std::pair<std::string_view, ReleaseOutcome> kOutcomes[] = {{"released", ReleaseOutcome::released},
                                                                       {"kept", ReleaseOutcome::kept},
                                                                       {"free", ReleaseOutcome::free},
                                                                       {"other-owner", ReleaseOutcome::other_owner},
                                                                       {"other-kind", ReleaseOutcome::other_kind},
                                                                       {"changed", ReleaseOutcome::changed}};
  const auto* known = std::ranges::find(kOutcomes, outcome, &std::pair<std::string_view, ReleaseOutcome>::first);
  if (known == std::end(kOutcomes)) return unexpected_reply("release");
  released.outcome = known->second;
  if (outcome == "other-kind") {
    released.instead = other_kind_of(reply);
    return released;
  }
  released.unfinished = reply.at(3).as_number() == 1;
  if (outcome == "free" || outcome == "other-owner") {
    released.token = reply.at(1).as_text();
    released.by = escaped(reply.at(2).as_text(), 200);
    return released;
  }
  released.holds_left = reply.at(1).as_number().value_or(0);
  released.fault = reply.at(2).as_text();
  released.unwritten = reply.at(4).as_text();
  released.remembered = reply.at(5).as_number() == 1;
  if (!released.remembered) released.forgotten = reply.at(5).as_text();
  return released;
}

Result<std::optional<Acquired>> read_acquire(const Reply& reply, const AcquireRequest& request, TimePoint sent) {
  using Outcome = Acquired::Outcome;
  const Lock lock = request.lock();
  const std::string outcome = reply.at(0).as_text();
  if (outcome == "again") return std::nullopt;
  if (outcome == "granted") return RLOCK_TRY(read_grant(reply, request, sent));
  if (outcome == "held") return read_held(reply, request, lock);
  if (outcome == "replaced") return Acquired{.outcome = Outcome::replaced, .by = escaped(reply.at(1).as_text(), 200)};
  if (outcome == "other-kind") return Acquired{.outcome = Outcome::other_kind, .instead = other_kind_of(reply)};
  if (outcome == "succeeded") return read_succeeded(reply, request);
  if (outcome == "no-upgrade") return Acquired{.outcome = Outcome::no_upgrade};
  if (outcome == "not-held") return Acquired{.outcome = Outcome::not_held};
  if (outcome == "in-use") return Acquired{.outcome = Outcome::in_use};
  if (outcome == "no-token") return no_token(request.name);
  if (outcome == "other-names") {
    return Acquired{.outcome = Outcome::other_names, .by = escaped(reply.at(1).as_text(), 1024)};
  }
  const long long number = count_of(reply.at(1)).value_or(0);
  if (outcome == "queue-full") return Acquired{.outcome = Outcome::queue_full, .number = number};
  if (outcome == "other-slots") return Acquired{.outcome = Outcome::other_slots, .number = number};
  return unexpected_reply("acquire");
}

Result<Renewed> read_renewal(const Reply& reply) {
  const std::string outcome = reply.at(0).as_text();
  Renewed renewed;
  if (outcome == "free" || outcome == "other-owner") renewed.by = escaped(reply.at(1).as_text(), 200);
  if (outcome == "renewed") {
    const auto found = number_of(reply.at(1));
    if (!found) return unexpected_reply("renew");
    renewed.outcome = RenewOutcome::renewed;
    // Negative: something has made it never expire.
    renewed.found = *found < 0 ? milliseconds(INT64_MAX / 2) : milliseconds(*found);
    renewed.untidy = reply.at(2).as_number() == 1;
    renewed.unrecorded = reply.at(3).as_text();
  } else if (outcome == "other-owner") {
    renewed.outcome = RenewOutcome::other_owner;
  } else if (outcome == "lease-unknown") {
    renewed.outcome = RenewOutcome::lease_unknown;
  } else if (outcome != "free") {
    return unexpected_reply("renew");
  }
  return renewed;
}

Result<bool> read_raise(const Reply& reply, const Lock& lock) {
  const std::string outcome = reply.at(0).as_text();
  if (outcome == "no-token") return no_token(lock.name);
  if (outcome != "raised" && outcome != "other-owner") return unexpected_reply("raise");
  return outcome == "raised";
}

Result<Status> read_inspection(const Reply& reply, const Lock& lock) {
  Status status{.lock = lock};
  if (reply.at(0).as_text() == "other-kind") {
    status.state = Status::State::other_kind;
    status.other_kind = other_kind_of(reply);
    return status;
  }
  if (reply.at(0).as_text() != "lock") return unexpected_reply("inspect");
  const auto now = count_of(reply.at(2));
  if (!now) return unexpected_reply("inspect");
  status.token = reply.at(3).as_text();
  status.slots = count_of(reply.at(4)).value_or(0);
  status.number = count_of(reply.at(5)).value_or(0);
  status.resources = split(reply.at(12).as_text(), ',');
  status.names_hidden = reply.at(13).as_number() == 1;
  for (const Reply& holder : reply.at(6).elements) {
    status.holders.push_back(holding_of(holder, status.lock.layout, milliseconds(*now), status.resources));
  }
  status.taken = count_of(reply.at(11)).value_or(status.number);
  status.waiting = count_of(reply.at(7)).value_or(0);
  for (const Reply& id : reply.at(9).elements) status.fair_queue.push_back(id.as_text());
  status.listening = count_of(reply.at(10)).value_or(0);
  for (const Reply& waiter : reply.at(8).elements) {
    Fields known = fields_of(waiter, 2);
    const long long since = std::clamp(number_of(waiter.at(0)).value_or(*now), 0LL, *now);
    const std::string mode = waiter.at(1).as_text();
    status.queue.push_back({.who = holder_of(known),
                            .mode = is_access(mode) ? mode : "",
                            .taken = taken_in(mode),
                            .for_so_long = milliseconds(*now - since),
                            .id = known["id"],
                            .since = milliseconds(since),
                            .listens = known["listening"] == "1"});
  }
  if (status.number > 0) status.state = Status::State::held;
  return status;
}

}  // namespace rlock::lock
