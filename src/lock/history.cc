// SPDX-License-Identifier: MIT
#include "lock/history.h"

#include <tuple>

#include "lock/tally.h"

namespace rlock::lock {
namespace {

using Outcome = PastHold::Outcome;

constexpr std::pair<std::string_view, Outcome> kOutcomes[] = {
    {"released", Outcome::released}, {"kept", Outcome::kept}, {"gone", Outcome::gone}, {"forced", Outcome::forced}};
constexpr long long kLongestTime = 1LL << 47;                   // ms; sums and differences of them cannot overflow
constexpr milliseconds kLongestHold = std::chrono::days(3650);  // longer ones are not plausible

// The texts of an entry, by their fields.
constexpr std::pair<const char*, std::string PastHold::*> kTexts[] = {
    {"owner", &PastHold::owner}, {"token", &PastHold::token}, {"kind", &PastHold::kind},
    {"end", &PastHold::end},     {"why", &PastHold::why},     {"leftovers", &PastHold::leftovers},
    {"once", &PastHold::once},   {"by", &PastHold::by}};

std::optional<milliseconds> time_in(std::string_view text) {
  const auto number = whole_number(text);
  if (!number) return {};
  return milliseconds(std::clamp(*number, 0LL, kLongestTime));
}

std::optional<milliseconds> span_in(std::string_view text) {
  const auto span = time_in(text);
  return span && *span <= kLongestHold ? span : std::nullopt;
}

std::optional<int> status_in(std::string_view text) {
  const auto number = whole_number(text);
  if (!number || *number < 0 || *number > 255) return {};
  return static_cast<int>(*number);
}

// Adds what only another entry of the same hold says.
void complete(PastHold& hold, const PastHold& other) {
  if (hold.end.empty()) std::tie(hold.end, hold.value, hold.why) = std::tie(other.end, other.value, other.why);
  if (hold.leftovers.empty()) hold.leftovers = other.leftovers;
  if (hold.by.empty()) hold.by = other.by;
  if (!hold.waited) hold.waited = other.waited;
}

bool are_one(const PastHold& newer, const PastHold& older) {
  if (newer.outcome == Outcome::gone) return older.outcome == Outcome::forced || (older.expired() && !newer.expired());
  return newer.outcome == Outcome::forced && older.outcome == Outcome::kept;
}

// REQUIRES: at least one.
PastHold one_of(const std::vector<PastHold>& seen) {
  const auto say = [&](Outcome outcome) { return std::ranges::count(seen, outcome, &PastHold::outcome); };
  Outcome outcome = seen.front().outcome;
  for (const PastHold& hold : seen) {
    if (say(hold.outcome) > say(outcome)) outcome = hold.outcome;
  }
  if (say(Outcome::forced) > 0) outcome = Outcome::forced;
  PastHold one = *std::ranges::find(seen, outcome, &PastHold::outcome);
  for (const PastHold& hold : seen) complete(one, hold);
  return one;
}

std::string field_of(std::string_view histogram, std::size_t place) {
  const auto& limits = Histogram::kLimits;
  return std::string(histogram) + "_" + (place < limits.size() ? std::to_string(limits[place]) : "longer");
}
std::string sum_of(std::string_view histogram) { return std::string(histogram) + "_sum"; }

}  // namespace

bool PastHold::fine() const {
  if (outcome != Outcome::released && outcome != Outcome::kept) return false;
  return end.empty() || end == "released" || (end == "exited" && value == 0);
}

std::string_view word(Outcome outcome) {
  return std::ranges::find(kOutcomes, outcome, &std::pair<std::string_view, Outcome>::second)->first;
}

std::vector<std::string> fields_of(const PastHold& hold) {
  std::vector<std::string> fields;
  const auto add = [&](const char* field, const std::string& value) {
    if (!value.empty()) fields.insert(fields.end(), {field, shortened(value)});
  };
  for (const auto& [field, text] : kTexts) add(field, hold.*text);
  for (const auto& [field, text] : lua::kSelfTexts) add(field, hold.who.*text);
  add("slots", hold.slots.number_text());
  add("resources", hold.slots.resource_text());
  if (hold.who.pid != 0) add("pid", std::to_string(hold.who.pid));
  if (hold.held) add("held", std::to_string(hold.held->count()));
  if (hold.waited) add("waited", std::to_string(hold.waited->count()));
  if (hold.value) add("value", std::to_string(*hold.value));
  return fields;
}

std::size_t size_of(const PastHold& hold) {
  std::size_t size = sizeof hold;
  for (const auto& [field, text] : kTexts) size += (hold.*text).size();
  for (const auto& [field, text] : lua::kSelfTexts) size += (hold.who.*text).size();
  for (const std::string& resource : hold.slots.resources) size += sizeof resource + resource.size();
  return size + hold.slots.numbers.size() * sizeof(int);
}

std::optional<PastHold> read_entry(const LockName& name, const redis::Reply& entry) {
  std::map<std::string, std::string> fields;
  const auto& words = entry.at(1).elements;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) fields[words[i].as_text()] = words[i + 1].as_text();
  return read_entry(name, entry.at(0).as_text(), fields);
}

std::optional<PastHold> read_entry(const LockName& name, std::string_view id,
                                   const std::map<std::string, std::string>& fields) {
  const auto ended = time_in(id.substr(0, id.find('-')));
  const auto known = [&](const char* field) {
    const auto found = fields.find(field);
    return found == fields.end() ? "" : shortened(found->second);
  };
  const auto* outcome = std::ranges::find(kOutcomes, known("outcome"), &std::pair<std::string_view, Outcome>::first);
  if (!ended || outcome == std::end(kOutcomes)) return {};
  PastHold hold{.name = name, .outcome = outcome->second, .ended = *ended, .written = *ended};
  for (const auto& [field, text] : kTexts) hold.*text = known(field);
  for (const auto& [field, text] : lua::kSelfTexts) hold.who.*text = known(field);
  hold.slots = Slots::read(known("slots"), {});
  hold.slots.resources = split(known("resources"), ' ');
  if (hold.slots.resources.size() != hold.slots.numbers.size()) hold.slots.resources.clear();
  hold.who.pid = static_cast<long>(std::clamp(whole_number(known("pid")).value_or(0), 0LL, 1LL << 31));
  // The id is later if the server's clock was ahead when it wrote an earlier entry.
  hold.ended = std::min(*ended, time_in(known("ended")).value_or(*ended));
  hold.held = span_in(known("held"));
  hold.waited = span_in(known("waited"));
  if (hold.held) hold.held = std::min(*hold.held, hold.ended);
  hold.value = status_in(known("value"));
  return hold;
}

std::vector<std::pair<std::string, long long*>> Totals::fields() {
  std::vector<std::pair<std::string, long long*>> all = {{"losses", &losses}, {"skips", &skips}, {"forced", &forced}};
  for (const auto& [name, histogram] : {std::pair{"waited", &waited}, {"held", &held}}) {
    for (std::size_t i = 0; i < histogram->counts.size(); ++i) {
      all.emplace_back(field_of(name, i), &histogram->counts[i]);
    }
    all.emplace_back(sum_of(name), &histogram->sum);
  }
  return all;
}

Totals read_totals(const redis::Reply& reply) {
  Totals totals;
  std::size_t i = 0;
  for (const auto& [field, number] : totals.fields()) {
    *number = std::clamp(whole_number(reply.at(i++).as_text()).value_or(0), 0LL, 1LL << 53);
  }
  return totals;
}

PastHold past_of(const Hold& hold, const HolderInfo& who) {
  PastHold past{.name = hold.name(), .owner = hold.owner.text(), .token = hold.token, .who = who};
  past.kind = noun(hold.lock.layout);
  past.slots = hold.slots;
  return past;
}

PastHold past_of(const Status& status, const OwnerId& owner) {
  PastHold past{.name = status.name(), .owner = owner.text()};
  past.kind = noun(status.lock.layout);
  const HolderView* holder = status.holder_of(owner.text());
  if (!holder || !holder->described) return past;
  past.who = holder->who;
  past.token = holder->token;
  past.slots = holder->slots;
  past.held = holder->held_for;
  return past;
}

HistoryNote note_of(const PastHold& hold) {
  HistoryNote note{hold.taken_away() ? "forced" : hold.lost() ? "losses" : "", fields_of(hold)};
  note.held = hold.held;
  for (const auto& [name, span] : {std::pair{"waited", hold.waited}, {"held", hold.held}}) {
    if (!span) continue;
    const auto place =
        std::ranges::lower_bound(Histogram::kLimits, *span, {}, [](int limit) { return limit * 1000ms; }) -
        Histogram::kLimits.begin();
    note.sums.insert(note.sums.end(), {field_of(name, static_cast<std::size_t>(place)), "1", sum_of(name),
                                       std::to_string(span->count())});
  }
  return note;
}

void StreamOfHolds::add(PastHold entry) {
  const std::size_t before = seen_++;
  const auto found = open_.find(entry.owner);
  PastHold* const newer = found == open_.end() ? nullptr : &holds_[found->second - taken_].hold;
  if (newer && are_one(*newer, entry)) {
    size_ -= size_of(*newer);
    complete(*newer, entry);
    size_ += size_of(*newer);
    if (!entry.expired()) newer->outcome = Outcome::forced;
    open_.erase(found);
    return;
  }
  if (wanted_ && !wanted_(entry)) return;
  const bool open = entry.outcome == Outcome::gone || entry.outcome == Outcome::forced;
  if (open && !entry.owner.empty()) open_.insert_or_assign(entry.owner, taken_ + holds_.size());
  size_ += size_of(entry);
  holds_.push_back({std::move(entry), before});
}

const PastHold* StreamOfHolds::next(std::size_t far) const {
  if (holds_.empty()) return nullptr;
  const auto& [hold, seen_before] = holds_.front();
  const auto found = open_.find(hold.owner);
  const bool open = found != open_.end() && found->second == taken_ && seen_ - seen_before <= far;
  return open ? nullptr : &hold;
}

PastHold StreamOfHolds::take() {
  PastHold hold = std::move(holds_.front().hold);
  holds_.pop_front();
  const auto found = open_.find(hold.owner);
  if (found != open_.end() && found->second == taken_) open_.erase(found);
  ++taken_;
  size_ -= size_of(hold);
  return hold;
}

std::vector<PastHold> newest_of(std::vector<PastHold> holds, std::size_t limit) {
  std::ranges::stable_sort(holds, std::ranges::greater{}, &PastHold::ended);
  if (holds.size() > limit) holds.erase(holds.begin() + static_cast<std::ptrdiff_t>(limit), holds.end());
  return holds;
}

std::vector<PastHold> merged_holds(const std::vector<std::vector<PastHold>>& servers, std::size_t limit) {
  // Name, owner, token, and the number of newer holds with the same.
  using Key = std::tuple<std::string, std::string, std::string, std::size_t>;
  std::map<Key, std::vector<PastHold>> seen;
  std::vector<PastHold> all;
  for (const std::vector<PastHold>& server : servers) {
    std::map<Key, std::size_t> before;
    for (const PastHold& hold : server) {
      if (hold.owner.empty()) {
        all.push_back(hold);
        continue;
      }
      const Key first{hold.name.text(), hold.owner, hold.token, 0};
      Key key = first;
      std::get<std::size_t>(key) = before[first]++;
      seen[key].push_back(hold);
    }
  }
  for (const auto& [key, holds] : seen) {
    PastHold hold = one_of(holds);
    // A hold whose lease ended on a minority may have gone on.
    if (!hold.expired() || holds.size() >= majority_of(servers.size())) all.push_back(std::move(hold));
  }
  return newest_of(std::move(all), limit);
}

}  // namespace rlock::lock
