// SPDX-License-Identifier: MIT
#include "lock/history.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "lock/wire.h"

namespace rlock::lock {
namespace {

using Outcome = PastHold::Outcome;

constexpr std::pair<std::string_view, Outcome> kOutcomes[] = {{"released", Outcome::released},
                                                              {"kept", Outcome::kept},
                                                              {"gone", Outcome::gone},
                                                              {"forced", Outcome::forced}};
constexpr std::size_t kLongestText = 512;
constexpr long long kLongestTime = 1LL << 47;  // ms; sums and differences of them are no overflow
constexpr milliseconds kLongestHold = std::chrono::days(3650);  // longer ones are no truth

std::optional<long long> number_in(std::string_view text) {
  long long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

std::optional<milliseconds> time_in(std::string_view text) {
  const auto number = number_in(text);
  if (!number) return {};
  return milliseconds(std::clamp(*number, 0LL, kLongestTime));
}

std::optional<milliseconds> span_in(std::string_view text) {
  const auto span = time_in(text);
  return span && *span <= kLongestHold ? span : std::nullopt;
}

}  // namespace

bool PastHold::fine() const {
  if (outcome != Outcome::released && outcome != Outcome::kept) return false;
  return end.empty() || end == "released" || (end == "exited" && value == 0);
}

std::string_view word(Outcome outcome) {
  return std::ranges::find(kOutcomes, outcome, &std::pair<std::string_view, Outcome>::second)->first;
}

std::vector<std::string> fields_of(const PastHold& hold) {
  const auto number = [](const auto& value) { return value ? std::to_string(*value) : ""; };
  const auto time = [](const auto& value) { return value ? std::to_string(value->count()) : ""; };
  const std::pair<const char*, std::string> all[] = {{"owner", hold.owner},
                                                     {"token", hold.token},
                                                     {"kind", hold.kind},
                                                     {"host", hold.who.host},
                                                     {"pid", hold.who.pid != 0 ? std::to_string(hold.who.pid) : ""},
                                                     {"user", hold.who.user},
                                                     {"command", hold.who.command},
                                                     {"reason", hold.who.reason},
                                                     {"held", time(hold.held)},
                                                     {"waited", time(hold.waited)},
                                                     {"end", hold.end},
                                                     {"value", number(hold.value)},
                                                     {"why", hold.why},
                                                     {"leftovers", hold.leftovers},
                                                     {"by", hold.by}};
  std::vector<std::string> fields;
  for (const auto& [field, value] : all) {
    if (!value.empty()) fields.insert(fields.end(), {field, wire::shortened(value)});
  }
  return fields;
}

std::optional<PastHold> read_entry(const LockName& name, const redis::Reply& entry) {
  const std::string id = entry.at(0).as_text();
  const auto ended = time_in(std::string_view(id).substr(0, id.find('-')));
  if (!ended || entry.at(1).elements.size() < 2) return {};
  std::map<std::string, std::string> known;
  const auto& words = entry.at(1).elements;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    known[words[i].as_text()] = words[i + 1].as_text().substr(0, kLongestText);
  }
  const auto* outcome = std::ranges::find(kOutcomes, known["outcome"], &std::pair<std::string_view, Outcome>::first);
  if (outcome == std::end(kOutcomes)) return {};
  PastHold hold{.name = name, .outcome = outcome->second, .ended = *ended, .written = *ended};
  hold.owner = known["owner"];
  hold.token = known["token"];
  hold.kind = known["kind"];
  hold.who = {.host = known["host"], .user = known["user"], .command = known["command"], .reason = known["reason"]};
  hold.who.pid = static_cast<long>(std::clamp(number_in(known["pid"]).value_or(0), 0LL, 1LL << 31));
  // The id is later where the clock of the server was ahead when an entry before this one was written.
  hold.ended = std::min(*ended, time_in(known["ended"]).value_or(*ended));
  hold.held = span_in(known["held"]);
  hold.waited = span_in(known["waited"]);
  if (hold.held) hold.held = std::min(*hold.held, hold.ended);
  hold.end = known["end"];
  const auto value = number_in(known["value"]);
  if (value && *value >= 0 && *value <= 255) hold.value = static_cast<int>(*value);
  hold.why = known["why"];
  hold.leftovers = known["leftovers"];
  hold.by = known["by"];
  return hold;
}

Totals read_totals(const redis::Reply& reply) {
  const auto count = [&](std::size_t i) {
    return std::clamp(number_in(reply.at(i).as_text()).value_or(0), 0LL, 1LL << 53);
  };
  return {count(0), count(1), count(2)};
}

PastHold past_of(const Hold& hold, const HolderInfo& who) {
  PastHold past{.name = hold.name(), .owner = hold.owner.text(), .token = hold.token, .who = who};
  past.kind = noun(hold.lock.layout);
  return past;
}

PastHold past_of(const Status& status, const OwnerId& owner) {
  PastHold past{.name = status.name(), .owner = owner.text()};
  past.kind = noun(status.lock.layout);
  const auto* holder = std::ranges::find(status.holders, owner.text(), &HolderView::owner).base();
  if (holder == status.holders.data() + status.holders.size() || !holder->described) return past;
  past.who = holder->who;
  past.token = holder->token;
  past.held = holder->held_for;
  return past;
}

HistoryNote note_of(const PastHold& hold) {
  return {hold.taken_away() ? "forced" : hold.lost() ? "losses" : "", fields_of(hold)};
}

HistoryNote note_of_skip() { return {"skips", {}}; }

}  // namespace rlock::lock
