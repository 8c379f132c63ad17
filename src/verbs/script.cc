// SPDX-License-Identifier: MIT
#include "verbs/script.h"

#include "lua/script.h"
#include "verbs/lease.h"

namespace rlock::lock {
namespace {

namespace f = lua::field;
using redis::PackedMap, redis::Words;

constexpr std::size_t kLongestField = 512;
constexpr std::string_view kLayouts[] = {"plain", "read_write", "semaphore", "string"};

// The server does not know the script that was named, or EVALSHA is forbidden, renamed or unknown, which the error says
// with its name. Nothing was executed.
bool wants_the_whole(const Error& error) {
  const auto says = [&](std::string_view text) { return error.message.contains(text); };
  const bool refused = says("no permissions") || says("unknown command");
  return error.code == Error::Code::no_script || (refused && (says("evalsha") || says("EVALSHA")));
}

std::string text_of(milliseconds time) { return std::to_string(time.count()); }

void add_note(PackedMap& request, const HistoryNote& note) {
  PackedMap map;
  map.add(f::total, note.total).flag(f::only_if_held, note.only_if_held);
  if (!note.fields.empty()) map.add(f::entry, note.fields);
  if (note.held) map.add(f::span, text_of(*note.held)).add(f::sums, note.sums);
  if (note.success) {
    const Success& success = *note.success;
    const HolderInfo& who = success.who;
    const bool failed = success.status != 0;
    PackedMap remembered;
    remembered.add(f::key, failed ? kFailed + success.once.key : success.once.key);
    remembered.add(f::start, failed ? success.status : success.once.start).add(f::lasts, success.lasts.count());
    remembered.add(f::who, std::to_string(who.pid) + "\n" + shortened(who.user) + "\n" + shortened(who.host) + "\n" +
                               shortened(who.command));
    map.add(f::success, remembered);
  }
  request.add(f::note, map);
}

void add_want(PackedMap& request, const Mode& mode) {
  constexpr const char* kTexts[] = {"", "read", "write", "", "set"};
  PackedMap want;
  if (mode.kind == Mode::Kind::slots) {
    want.add(f::slots, static_cast<long long>(mode.slots));
    if (mode.taken > 1) want.add(f::taken, static_cast<long long>(mode.taken));
    if (!mode.resources.empty()) want.add(f::names, joined(mode.resources, ","));
  } else if (mode.kind != Mode::Kind::plain) {
    want.add(f::mode, kTexts[static_cast<int>(mode.kind)]);
  }
  if (!want.empty()) request.add(f::want, want);
  request.flag(f::resize, mode.resize).flag(f::adopt, mode.java);
}

// What describes a holder, or a waiter, to people: names and values. The last one is its history.
std::vector<std::string> about(const AcquireRequest& request) {
  const HolderInfo& holder = request.holder;
  std::vector<std::string> words;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {std::string(name), value});
  };
  for (const auto& [name, text] : lua::kSelfTexts) add(name, shortened(holder.*text));
  add(f::pid, std::to_string(holder.pid));
  add(f::control, holder.listens ? "1" : "");
  add(f::renewal, holder.renewal > 0ms ? text_of(holder.renewal) : "");
  if (holder.in_history) add(f::history, std::string(noun(request.mode.layout())));
  return words;
}

}  // namespace

Call::Call(redis::Client& client, std::string_view verb, const Lock& lock, const std::string& owner, const Until& until)
    : verb_(verb) {
  const LockName& name = lock.name;
  for (const std::string& key :
       {name.text(), name.token_key(), name.holder_key(), name.queue_key(), name.waiters_key(), name.permits_key()}) {
    this->key(key);
  }
  keys_of(lock, owner);
  request.add(f::layout, kLayouts[static_cast<int>(lock.layout)]);
  if (!owner.empty()) request.add(f::owner, owner);
  request.flag(f::sharded, client.sharded(name.text(), until));
}

Call& Call::key(std::string key) {
  keys_.push_back(std::move(key));
  number_of_keys_ = std::to_string(keys_.size());
  return *this;
}

void Call::keys_of(const Lock& lock, const std::string& owner) {
  if (!lock.has_one_holder()) key(lock.description_key(owner));
  if (lock.layout == Layout::read_write) key(lock.name.reader_key(owner));
}

Call& Call::guarded(const GuardRequest& asked, bool declared) {
  if (asked.guard == Guard::off) return *this;
  PackedMap guard;
  if (asked.guard == Guard::data) {
    guard.flag(f::data, true);
  } else {
    guard.add(f::lag, asked.lag.count());
    if (!asked.life.empty()) guard.add(f::age, asked.age.count()).add(f::life, asked.life);
  }
  request.add(f::guard, guard);
  return declared ? key(std::string(lua::kEpoch)) : *this;
}

Words Call::words(std::string_view command, std::string_view script) const {
  Words words = {command, script, number_of_keys_};
  words.insert(words.end(), keys_.begin(), keys_.end());
  words.insert(words.end(), {verb_, request.bytes()});
  return words;
}

Words Call::by_sha1() const { return words("EVALSHA", lua::kSha1); }
Words Call::as_a_whole() const { return words("EVAL", lua::kScript); }

std::string shortened(const std::string& text) { return text.substr(0, kLongestField); }

Call acquire_call(redis::Client& client, const AcquireRequest& request, const GuardRequest& guard, bool votes,
                  const Until& until) {
  const Lock lock = request.lock();
  Call call(client, "rlock acquire", lock, request.owner.text(), until);
  if (request.heir) call.keys_of(lock, request.heir->text());
  if (request.queueing || request.outside) call.key(request.name.waiters_key() + ":" + request.owner.text());
  call.guarded(guard, true);
  PackedMap& map = call.request;
  map.flag(f::login, client.address().server.logs_in()).flag(f::vote, votes);
  map.add(f::lease, text_of(request.lease)).add(f::hold, request.hold()).add(f::about, about(request));
  if (request.heir) map.add(f::heir, request.heir->text());
  add_want(map, request.mode);
  if (request.holder.renewal > 0ms) map.add(f::renewal, text_of(request.holder.renewal));
  map.flag(f::history, request.holder.in_history).flag(f::sole, request.only_heir);
  map.flag(f::outside, request.outside);
  if (const auto& queueing = request.queueing) {
    PackedMap wait;
    if (!queueing->place.empty()) wait.add(f::place, queueing->place);
    if (queueing->most) wait.add(f::most, static_cast<long long>(*queueing->most));
    wait.add(f::priority, static_cast<long long>(queueing->priority)).flag(f::replace, queueing->replace);
    if (queueing->aging > 0ms) wait.add(f::aging, queueing->aging.count());
    map.add(f::wait, wait);
  }
  if (const auto& once = request.conditions.once) {
    call.key(request.name.once_key());
    map.add(f::once, PackedMap().add(f::key, once->key).add(f::start, once->start));
  }
  return call;
}

std::vector<Call> renew_calls(redis::Client& client, std::span<const Hold> holds, milliseconds lease, Guard guard,
                              const Until& until) {
  const GuardRequest asked = guard_request(client, guard);
  std::vector<Call> calls;
  for (const Hold& hold : holds) {
    calls.emplace_back(client, "rlock renew", hold.lock, hold.owner.text(), until);
    calls.back().guarded(asked, false).request.add(f::lease, text_of(lease));
    calls.back().request.flag(f::granted, lease > 0ms && hold.lease >= lease && !hold.in_history);
  }
  return calls;
}

Call release_call(redis::Client& client, const ReleaseRequest& request, const std::string& id, milliseconds remember,
                  const Until& until) {
  Call call(client, "rlock release", request.lock, request.owner.text(), until);
  call.key(request.lock.name.hold_key_prefix() + id + ":released");
  call.request.add(f::hold, request.hold_id).add(f::keep, text_of(request.keep));
  call.request.add(f::id, id).add(f::remember, text_of(remember));
  if (request.note) add_note(call.request, *request.note);
  return call;
}

Call force_unlock_call(redis::Client& client, const Lock& lock, const HolderView& shown, const std::string& by,
                       const HistoryNote* note, bool votes, const Until& until) {
  Call call(client, "rlock force-unlock", lock, shown.owner, until);
  call.request.add(f::begun, shown.begun).add(f::count, shown.holds).add(f::by, by).flag(f::vote, votes);
  if (note) add_note(call.request, *note);
  return call;
}

Call raise_call(redis::Client& client, const Hold& hold, const Until& until) {
  Call call(client, "rlock raise", hold.lock, hold.owner.text(), until);
  call.request.add(f::token, hold.token);
  return call;
}

Call inspect_call(redis::Client& client, const Lock& lock, const Until& until, const OwnerId* owner) {
  return Call(client, "rlock inspect", lock, owner ? owner->text() : "", until);
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

namespace {

bool wants_text(const Result<redis::Reply>& result) { return !result && wants_the_whole(result.error()); }

// If another server has taken all the time, its error is the cause.
void give_up(std::vector<Result<redis::Reply>>& results) {
  Error late{Error::Code::unavailable, "no time was left to send the script"};
  for (const auto& one : results) late = !one && !wants_text(one) ? one.error() : late;
  std::ranges::replace_if(results, wants_text, Result<redis::Reply>(std::unexpected(late)));
}

// What to send again. The text for the first request is enough, because the same server knows it for the others then;
// what another server of a cluster does not know comes with the `last` exchange.
std::vector<Words> still_wanted(std::span<const Call> calls, const std::vector<Result<redis::Reply>>& results,
                                bool last) {
  std::vector<Words> words;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!wants_text(results[i])) continue;
    const bool whole = last || words.empty() || results[i].error().code != Error::Code::no_script;
    words.push_back(whole ? calls[i].as_a_whole() : calls[i].by_sha1());
  }
  return words;
}

}  // namespace

std::vector<Result<redis::Reply>> send_all(redis::Client& client, std::span<const Call> calls, const Until& until) {
  std::vector<Words> words;
  for (const Call& call : calls) words.push_back(call.by_sha1());
  auto results = client.call_all(words, until);
  for (const bool last : {false, true}) {
    words = still_wanted(calls, results, last);
    if (words.empty()) return results;
    if (until.over()) {
      give_up(results);
      return results;
    }
    auto next = client.call_all(words, until);
    auto reply = next.begin();
    for (auto& one : results) {
      if (wants_text(one)) one = std::move(*reply++);
    }
  }
  return results;
}

namespace {

using redis::Reply;

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

OtherKind other_kind_of(const Reply& reply) {
  const Reply& ttl = reply.value_of(f::ttl);
  return {.what = reply.value_of(f::what).as_text(),
          .foreign = !ttl.is(Reply::Kind::nil),
          .expires_in = ttl_of(ttl),
          .guess = reply.value_of(f::guess).as_text()};
}

// A plausible time: not negative, and before the year 6400.
std::optional<milliseconds> moment_of(const Reply& reply) {
  constexpr long long longest = 1LL << 47;
  const auto number = number_of(reply);
  if (!number || *number < 0 || *number > longest) return {};
  return milliseconds(*number);
}

std::string text_at(const Reply& map, std::string_view name) { return map.value_of(name).as_text(); }
bool is_set(const Reply& map, std::string_view name) { return map.value_of(name).as_number() == 1; }
long long count_at(const Reply& map, std::string_view name) { return count_of(map.value_of(name)).value_or(0); }
std::string shown_at(const Reply& map, std::string_view name, std::size_t most = 200) {
  return escaped(text_at(map, name), most);
}

constexpr std::size_t kMostSpans = 20;
constexpr long long kLongestSpan = 10LL * 365 * 24 * 3600 * 1000;  // ms

// The outcome, and the map that a script has replied. Errors: protocol.
Result<std::pair<std::string, Reply>> answer_of(const Reply& reply, std::string_view verb) {
  auto map = redis::unpacked(reply.as_text());
  if (!map) return unexpected_reply(verb);
  std::string outcome = text_at(*map, f::outcome);
  return std::pair(std::move(outcome), *std::move(map));
}

// `said`: names and values.
HolderInfo holder_of(const Reply& said) {
  HolderInfo who{.pid = static_cast<long>(number_of(said.value_of(f::pid)).value_or(0)),
                 .listens = !text_at(said, f::control).empty(),
                 .in_history = !text_at(said, f::history).empty(),
                 .ended = is_set(said, f::kept),
                 .renewal = moment_of(said.value_of(f::renewal)).value_or(0ms)};
  for (const auto& [name, text] : lua::kSelfTexts) who.*text = text_at(said, name);
  return who;
}

std::string access_of(const std::string& mode) { return mode == "read" || mode == "write" ? mode : ""; }

// A waiter that was just given the lock has, for a moment, less time than a renewal gives.
void add_renewal(HolderView& holding) {
  const milliseconds lease = holding.who.renewal;
  if (lease == 0ms || holding.who.ended || !holding.expires_in) return;
  const milliseconds ago = std::max<milliseconds>(lease - *holding.expires_in, 0ms);
  holding.renewed_ago = std::min(ago, holding.held_for.value_or(ago));
  holding.overdue = overdue_for(lease, *holding.renewed_ago);
}

// A holder as describe() of lua/10_acquire.lua has it. The description may be left over from an earlier holder. The one
// of a permit is found by the permit's id, and contains the whole owner id.
HolderView holding_of(const Reply& entry, Layout layout, milliseconds now,
                      const std::vector<std::string>& resources = {}) {
  HolderView holding{.owner = text_at(entry, f::owner), .mode = access_of(text_at(entry, f::mode))};
  holding.holds = count_at(entry, f::holds);
  holding.expires_in = ttl_of(entry.value_of(f::left));
  const Reply& said = entry.value_of(f::said);
  const std::string owner = text_at(said, f::owner);
  if (layout == Layout::semaphore && permit_of(owner) == permit_of(holding.owner)) holding.owner = owner;
  holding.begun = text_at(said, f::control) + " " + text_at(said, f::newest);
  if (owner != holding.owner) {
    holding.by_set = layout == Layout::string;
    return holding;
  }
  holding.described = true;
  holding.who = holder_of(said);
  // That of a process that has left its hold behind, maybe to a job (rlock run --owner), of which this is the id.
  if (text_at(said, f::control) != "1") holding.who.pid = 0;
  holding.token = text_at(said, f::token);
  holding.since = moment_of(said.value_of(f::since));
  if (holding.since) holding.held_for = std::max<milliseconds>(now - *holding.since, 0ms);
  holding.lease = moment_of(said.value_of(f::lease));
  holding.lasted = read_spans(text_at(said, f::lasted));
  if (layout == Layout::semaphore) holding.slots = Slots::read(text_at(said, f::slots), resources);
  add_renewal(holding);
  return holding;
}

Result<Hold> read_grant(const Reply& map, const AcquireRequest& request, TimePoint sent) {
  const auto owner = OwnerId::parse(text_at(map, f::owner));
  const auto token = map.value_of(f::token).as_number();
  if (!owner || !token || *token <= 0) return unexpected_reply("acquire");
  if (*owner != request.owner && owner.value() != request.heir) {
    return fail(Error::Code::protocol, "the server says that it has granted the lock to an owner that did not ask, " +
                                           in_quotes(owner->text()) + "; is something between us and Redis?");
  }
  Hold hold = request.granted(*owner, std::to_string(*token), sent);
  hold.slots = Slots::read(text_at(map, f::numbers), request.mode.resources);
  if (!request.mode.resources.empty() && hold.slots.resources.empty()) return unexpected_reply("acquire");
  return hold;
}

Held read_held(const Reply& map, const AcquireRequest& request, const Lock& lock) {
  Held held{.expires_in = ttl_of(map.value_of(f::ttl)),
            .ahead = count_of(map.value_of(f::ahead)),
            .place = text_at(map, f::place)};
  if (is_set(map, f::joined)) held.other_channel = lock.channel() + ":" + request.owner.text();
  held.holders = count_at(map, f::number);
  if (const long long left = count_at(map, f::back); left > 0) {
    held.back = HeldBack{milliseconds(left), milliseconds(count_at(map, f::age)), text_at(map, f::cause) == "missing"};
  }
  if (const Reply& holder = map.value_of(f::holder); !holder.elements.empty()) {
    held.holder = holding_of(holder, lock.layout, milliseconds(number_of(map.value_of(f::now)).value_or(0)));
  }
  return held;
}

Succeeded read_succeeded(const Reply& map, const AcquireRequest& request) {
  Succeeded succeeded{read_success(request.conditions.once.value_or(Once{}).key, text_at(map, f::success)), {}};
  const auto now = moment_of(map.value_of(f::now));
  if (now && succeeded.success) succeeded.ago = std::max<milliseconds>(*now - succeeded.success->at, 0ms);
  return succeeded;
}

}  // namespace

std::vector<milliseconds> read_spans(std::string_view text) {
  std::vector<milliseconds> spans;
  for (const std::string& word : split(text, ' ')) {
    const auto span = whole_number(word);
    if (span && *span >= 0 && *span <= kLongestSpan && spans.size() < kMostSpans) spans.emplace_back(*span);
  }
  return spans;
}

// "<start> <until> <at> <pid>\n<user>\n<host>\n<command>"
std::optional<PastSuccess> read_success(const std::string& key, std::string_view record) {
  const auto cut = [&](char end) {
    return Reply{
        .kind = Reply::Kind::string, .integer = 0, .text = std::string(take_part(record, end)), .elements = {}};
  };
  const auto start = number_of(cut(' '));
  const auto until = moment_of(cut(' ')), at = moment_of(cut(' '));
  const auto pid = number_of(cut('\n'));
  if (!start || !until || !at) return {};
  PastSuccess success{.key = key, .start = *start, .until = *until, .at = *at};
  success.who.pid = static_cast<long>(pid.value_or(0));
  success.who.user = shortened(cut('\n').text);
  success.who.host = shortened(cut('\n').text);
  success.who.command = record.substr(0, kLongestField);
  return success;
}

Result<Released> read_release(const Reply& reply) {
  const auto [outcome, map] = RLOCK_TRY(answer_of(reply, "release"));
  Released released;
  constexpr std::pair<std::string_view, ReleaseOutcome> kOutcomes[] = {{"released", ReleaseOutcome::released},
                                                                       {"kept", ReleaseOutcome::kept},
                                                                       {"free", ReleaseOutcome::free},
                                                                       {"other-owner", ReleaseOutcome::other_owner},
                                                                       {"other-kind", ReleaseOutcome::other_kind},
                                                                       {"changed", ReleaseOutcome::changed}};
  const auto* known = std::ranges::find(kOutcomes, outcome, &std::pair<std::string_view, ReleaseOutcome>::first);
  if (known == std::end(kOutcomes)) return unexpected_reply("release");
  released.outcome = known->second;
  if (outcome == "other-kind") released.instead = other_kind_of(map);
  released.unfinished = is_set(map, f::more);
  released.token = text_at(map, f::token);
  released.by = shown_at(map, f::by);
  released.holds_left = map.value_of(f::left).as_number().value_or(0);
  released.fault = text_at(map, f::fault);
  released.unwritten = text_at(map, f::unwritten);
  released.remembered = is_set(map, f::remembered);
  if (!released.remembered) released.forgotten = text_at(map, f::remembered);
  return released;
}

namespace {

using ReadRefusal = Acquired (*)(const Reply& map, const AcquireRequest& request);
constexpr std::pair<std::string_view, ReadRefusal> kRefusals[] = {
    {"held", [](auto& map, auto& request) -> Acquired { return read_held(map, request, request.lock()); }},
    {"replaced", [](auto& map, auto&) -> Acquired { return Replaced{shown_at(map, f::by)}; }},
    {"other-kind", [](auto& map, auto&) -> Acquired { return other_kind_of(map); }},
    {"succeeded", [](auto& map, auto& request) -> Acquired { return read_succeeded(map, request); }},
    {"no-upgrade", [](auto&, auto&) -> Acquired { return NoUpgrade{}; }},
    {"not-held", [](auto&, auto&) -> Acquired { return NotHeld{}; }},
    {"in-use", [](auto&, auto&) -> Acquired { return InUse{}; }},
    {"other-names", [](auto& map, auto&) -> Acquired { return OtherNames{shown_at(map, f::names, 1024)}; }},
    {"queue-full", [](auto& map, auto&) -> Acquired { return QueueFull{count_at(map, f::waiting)}; }},
    {"other-slots", [](auto& map, auto&) -> Acquired { return OtherSlots{count_at(map, f::slots)}; }},
};

// Whether the request can end so. Nobody could say what these outcomes mean for another one.
bool is_possible(std::string_view outcome, const AcquireRequest& request) {
  if (outcome == "succeeded") return request.conditions.once.has_value();
  return request.only_heir || (outcome != "not-held" && outcome != "in-use");
}

}  // namespace

Result<std::optional<Acquired>> read_acquire(const Reply& reply, const AcquireRequest& request, TimePoint sent) {
  const auto [outcome, map] = RLOCK_TRY(answer_of(reply, "acquire"));
  if (outcome == "again") return std::nullopt;
  if (outcome == "granted") return RLOCK_TRY(read_grant(map, request, sent));
  if (outcome == "no-token") return no_token(request.name);
  const auto* known = std::ranges::find(kRefusals, outcome, &std::pair<std::string_view, ReadRefusal>::first);
  if (known == std::end(kRefusals) || !is_possible(outcome, request)) return unexpected_reply("acquire");
  return known->second(map, request);
}

Result<Renewed> read_renewal(const Reply& reply) {
  const auto [outcome, map] = RLOCK_TRY(answer_of(reply, "renew"));
  Renewed renewed{.by = shown_at(map, f::by)};
  if (outcome == "renewed") {
    const auto found = number_of(map.value_of(f::left));
    if (!found) return unexpected_reply("renew");
    renewed.outcome = RenewOutcome::renewed;
    // Negative: something has made it never expire.
    renewed.found = *found < 0 ? milliseconds(INT64_MAX / 2) : milliseconds(*found);
    renewed.untidy = is_set(map, f::untidy);
    renewed.unrecorded = text_at(map, f::unrecorded);
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
  const std::string outcome = RLOCK_TRY(answer_of(reply, "raise")).first;
  if (outcome == "no-token") return no_token(lock.name);
  if (outcome != "raised" && outcome != "other-owner") return unexpected_reply("raise");
  return outcome == "raised";
}

Result<Status> read_inspection(const Reply& reply, const Lock& lock) {
  const auto [outcome, map] = RLOCK_TRY(answer_of(reply, "inspect"));
  Status status{.lock = lock};
  if (outcome == "other-kind") {
    status.state = Status::State::other_kind;
    status.other_kind = other_kind_of(map);
    return status;
  }
  const auto now = count_of(map.value_of(f::now));
  if (outcome != "lock" || !now) return unexpected_reply("inspect");
  status.token = text_at(map, f::token);
  status.slots = count_at(map, f::slots);
  status.number = count_at(map, f::number);
  status.resources = split(text_at(map, f::names), ',');
  status.names_hidden = is_set(map, f::hidden);
  for (const Reply& holder : map.value_of(f::holders).elements) {
    status.holders.push_back(holding_of(holder, lock.layout, milliseconds(*now), status.resources));
  }
  status.taken = count_of(map.value_of(f::taken)).value_or(status.number);
  status.waiting = count_at(map, f::waiting);
  for (const Reply& id : map.value_of(f::strangers).elements) status.fair_queue.push_back(id.as_text());
  status.listening = count_at(map, f::listening);
  for (const Reply& waiter : map.value_of(f::waiters).elements) {
    const long long began = std::clamp(number_of(waiter.value_of(f::since)).value_or(*now), 0LL, *now);
    const Reply& want = waiter.value_of(f::want);
    const long long taken = number_of(want.value_of(f::taken)).value_or(1);
    status.queue.push_back({.who = holder_of(waiter.value_of(f::about)),
                            .mode = access_of(text_at(want, f::mode)),
                            .taken = std::clamp(taken, 1LL, static_cast<long long>(kMostTaken)),
                            .for_so_long = milliseconds(*now - began)});
  }
  if (status.number > 0) status.state = Status::State::held;
  return status;
}

}  // namespace rlock::lock
