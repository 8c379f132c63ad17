// SPDX-License-Identifier: MIT
#include "verbs/replies.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "verbs/forecast.h"
#include "verbs/lease.h"

namespace rlock::lock {
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
                  " does not contain a fencing token (a number below 2^53), so no token can follow it; set that key to "
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

Result<Acquired> read_grant(const Reply& reply, const AcquireRequest& request, const Lock& lock, TimePoint sent) {
  const auto owner = OwnerId::parse(reply.at(1).as_text());
  const auto token = reply.at(2).as_number();
  // 0: an ancestor has taken it without scripts (verbs/without_scripts.h).
  const bool has_none = token == 0 && lock.layout == Layout::string;
  if (!owner || !token || (*token <= 0 && !has_none)) return unexpected_reply("acquire");
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
                                                                       {"other-kind", ReleaseOutcome::other_kind}};
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
  if (outcome == "granted") return RLOCK_TRY(read_grant(reply, request, lock, sent));
  if (outcome == "held") return read_held(reply, request, lock);
  if (outcome == "replaced") return Acquired{.outcome = Outcome::replaced, .by = escaped(reply.at(1).as_text(), 200)};
  if (outcome == "other-kind") return Acquired{.outcome = Outcome::other_kind, .instead = other_kind_of(reply)};
  if (outcome == "succeeded") return read_succeeded(reply, request);
  if (outcome == "no-upgrade") return Acquired{.outcome = Outcome::no_upgrade};
  if (outcome == "not-held") return Acquired{.outcome = Outcome::not_held};
  if (outcome == "in-use") return Acquired{.outcome = Outcome::in_use};
  if (outcome == "over") return Acquired{.outcome = Outcome::over};
  if (outcome == "no-token") return no_token(request.name);
  if (outcome == "other-names") {
    return Acquired{.outcome = Outcome::other_names, .by = escaped(reply.at(1).as_text(), 1024)};
  }
  const long long number = count_of(reply.at(1)).value_or(0);
  if (outcome == "queue-full") return Acquired{.outcome = Outcome::queue_full, .number = number};
  if (outcome == "other-slots") return Acquired{.outcome = Outcome::other_slots, .number = number};
  return unexpected_reply("acquire");
}

Result<RenewReply> read_renewal(const Reply& reply) {
  const std::string outcome = reply.at(0).as_text();
  RenewReply renewed;
  if (outcome == "renewed") {
    const auto found = number_of(reply.at(1));
    if (!found) return unexpected_reply("renew");
    renewed.outcome = RenewOutcome::renewed;
    // Negative: something has made it never expire.
    renewed.found = *found < 0 ? milliseconds(INT64_MAX / 2) : milliseconds(*found);
    renewed.untidy = reply.at(2).as_number() == 1;
  } else if (outcome == "other-owner") {
    renewed.outcome = RenewOutcome::other_owner;
  } else if (outcome == "lease-unknown") {
    renewed.outcome = RenewOutcome::lease_unknown;
  } else if (outcome == "over") {
    renewed.outcome = RenewOutcome::over;
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
                            .backfill = mode.contains(" backfill"),
                            .for_so_long = milliseconds(*now - since),
                            .id = known["id"],
                            .since = milliseconds(since),
                            .listens = known["listening"] == "1"});
  }
  if (status.number > 0) status.state = Status::State::held;
  return status;
}

}  // namespace rlock::lock
