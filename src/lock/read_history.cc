// SPDX-License-Identifier: MIT
#include "lock/read_history.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <utility>

#include "base/log.h"
#include "lock/history_reader.h"
#include "lock/listing.h"
#include "lock/tally.h"
#include "redis/server_info.h"

namespace rlock::lock {
namespace {

// Locks in one exchange, and entries in their replies together.
constexpr std::size_t kLocksTogether = 100, kEntriesTogether = 2000;
constexpr int kLongestReading = 60;  // exchanges
constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
// Keys by which locks with a history are found.
constexpr std::string_view kHistories[] = {LockName::kHistory, LockName::kHold};

using Past = std::vector<PastHold>;
using Each = std::function<Result<void>(const PastHold&)>;

struct Source {
  std::optional<HistoryReader> reader;  // none: everything is ready
  std::size_t number;                   // holds written at the same time are sorted by this, the order of the names
  milliseconds next{};                  // when its next hold was written, or the latest time at which it can have been
  std::deque<PastHold> ready;
  std::size_t held_back = 0;  // in bytes, by the reader

  bool over() const { return ready.empty() && (!reader || reader->over()); }
};

struct Later {
  bool operator()(const Source* one, const Source* other) const {
    return one->next != other->next ? one->next < other->next : one->number > other->number;
  }
};

using Waiting = std::priority_queue<Source*, std::vector<Source*>, Later>;

class HistoryMerge {
 public:
  HistoryMerge(redis::Client& client, HistoryQuery query, milliseconds exchange)
      : client_(client), query_(std::move(query)), exchange_(exchange) {
    if (!query_.of_each) limit_ = std::exchange(query_.limit, kNoLimit);  // a lock may have them all
  }

  Result<void> run(const Each& each) {
    RLOCK_TRY(set_since());
    names_ = {query_.names.begin(), query_.names.end()};
    listing_ = names_.empty();
    if (listing_) names_ = RLOCK_TRY(names_with(client_, kHistories, 0, exchange_, end_));
    RLOCK_TRY(begin());
    if (!query_.of_each) RLOCK_TRY(add_due());
    for (std::size_t told = 0; told < limit_ && !waiting_.empty();) {
      Source* const first = waiting_.top();
      if (first->ready.empty()) {
        RLOCK_TRY(load());
        continue;
      }
      waiting_.pop();
      const PastHold hold = std::move(first->ready.front());
      first->ready.pop_front();
      size_ -= size_of(hold);
      wait_with(*first, hold.written);
      const TimePoint before = BootClock::now();
      RLOCK_TRY(each(hold));
      end_.deadline += BootClock::now() - before;
      ++told;
    }
    return {};
  }

 private:
  Result<void> set_since() {
    if (!query_.within) return {};
    const auto clock = RLOCK_TRY(redis::read_clock(client_, end_.at_most(exchange_)));
    query_.since = std::chrono::floor<milliseconds>(clock.server.value_or(clock.ours)) - *query_.within;
    return {};
  }

  Result<void> begin() {
    const std::size_t locks = std::max(names_.size(), std::size_t{1});
    const std::size_t longest = std::clamp(kEntriesTogether / locks, std::size_t{1}, kPage);
    const std::size_t wanted = std::max(std::min(limit_, query_.limit), std::size_t{1});
    const std::size_t page = query_.failed || query_.fine ? longest : std::min(wanted, longest);
    std::vector<Source*> some;
    for (const LockName& name : names_) {
      sources_.push_back(std::make_unique<Source>(HistoryReader(name, query_, page, longest), sources_.size()));
      some.push_back(sources_.back().get());
      if (some.size() < kLocksTogether) continue;
      RLOCK_TRY(load(some));
      some.clear();
      drop_superfluous();
    }
    return load(some);
  }

  // Adds the holds that are in no history yet.
  Result<void> add_due() {
    auto due = std::make_unique<Source>(std::nullopt, sources_.size());
    for (PastHold& hold : RLOCK_TRY(read_due(client_, names_, exchange_, end_))) {
      if (!query_.wants(hold)) continue;
      size_ += size_of(hold);
      due->ready.push_back(std::move(hold));
    }
    wait_with(*due, milliseconds::max());
    sources_.push_back(std::move(due));
    return {};
  }

  // Forgets sources if there are as many others with newer holds as the limit: there may be many locks and a low limit.
  void drop_superfluous() {
    if (limit_ == kNoLimit || waiting_.size() < 2 * limit_ + kLocksTogether) return;
    Waiting kept;
    for (std::size_t newer = 0; !waiting_.empty(); waiting_.pop()) {
      Source* const source = waiting_.top();
      if (source->ready.empty() || newer++ < limit_) {
        kept.push(source);
        continue;
      }
      for (const PastHold& hold : source->ready) size_ -= size_of(hold);
      size_ -= source->held_back;
      sources_[source->number].reset();
    }
    waiting_ = std::move(kept);
  }

  // Loads the next page of the first source, and of those that will need one next.
  Result<void> load() {
    std::vector<Source*> some, others;
    while (!waiting_.empty() && some.size() < kLocksTogether && others.size() < kLocksTogether) {
      (waiting_.top()->ready.empty() ? some : others).push_back(waiting_.top());
      waiting_.pop();
    }
    for (Source* other : others) waiting_.push(other);
    return load(some);
  }

  Result<void> load(const std::vector<Source*>& some) {
    if (some.empty()) return {};
    Commands commands;
    for (const Source* source : some) commands.push_back(source->reader->command());
    auto replies = RLOCK_TRY(ask_together(client_, commands, exchange_, end_));
    for (std::size_t i = 0; i < some.size(); ++i) RLOCK_TRY(take(*some[i], std::move(replies[i])));
    return {};
  }

  Result<void> take(Source& source, Result<redis::Reply> reply) {
    const bool answered = reply.has_value();  // else the error is about the server
    auto taken = source.reader->take_page(std::move(reply));
    if (!taken && listing_ && is_of_others(taken.error())) return {};
    if (!taken && answered) return std::unexpected(std::move(taken).error().in(source.reader->name().display()));
    RLOCK_TRY(std::move(taken));
    for (PastHold& hold : source.reader->take_settled()) {
      size_ += size_of(hold);
      source.ready.push_back(std::move(hold));
    }
    size_ -= std::exchange(source.held_back, source.reader->size_held_back());
    size_ += source.held_back;
    RLOCK_TRY(within_list_limits(size_, end_));
    wait_with(source, source.next == milliseconds{} ? milliseconds::max() : source.next);
    return {};
  }

  // `latest`: all further holds of the source were written by then.
  void wait_with(Source& source, milliseconds latest) {
    source.next = source.ready.empty() ? latest : source.ready.front().written;
    if (!source.over()) waiting_.push(&source);
  }

  redis::Client& client_;
  HistoryQuery query_;
  std::size_t limit_ = kNoLimit;
  const milliseconds exchange_;
  Until end_ = Until{}.at_most(kLongestReading * exchange_);
  std::set<LockName> names_;
  bool listing_ = false;
  std::size_t size_ = 0;  // of all holds that are ready or held back, in bytes
  std::vector<std::unique_ptr<Source>> sources_;
  Waiting waiting_;
};

Result<Past> read_one_server(redis::Client& client, const HistoryQuery& query, milliseconds exchange) {
  Past all;
  std::map<LockName, std::size_t> of_lock;
  std::size_t size = 0;
  // The number of locks has no limit, so check the size if the limit is for each lock.
  RLOCK_TRY(HistoryMerge(client, query, exchange).run([&](const PastHold& hold) -> Result<void> {
    if (query.of_each && ++of_lock[hold.name] > query.limit) return {};
    all.push_back(hold);
    if (query.of_each) size += size_of(hold);
    return within_list_limits(size, Until{});
  }));
  return newest_of(std::move(all), kNoLimit);
}

using TotalsOf = std::map<LockName, Totals>;

Result<TotalsOf> totals_on(redis::Client& client, const std::vector<LockName>& named, milliseconds exchange) {
  const Until end = Until{}.at_most(kLongestReading * exchange);
  std::set<LockName> names(named.begin(), named.end());
  const bool listing = names.empty();
  if (listing) names = RLOCK_TRY(names_with(client, {&LockName::kTotals, 1}, sizeof(Totals), exchange, end));
  TotalsOf all;
  for (auto name = names.begin(); name != names.end();) {
    RLOCK_TRY(within_list_limits(0, end));
    Commands commands;
    auto answered = name;
    for (; name != names.end() && commands.size() < kLocksTogether; ++name) {
      commands.push_back({"HMGET", name->totals_key(), "losses", "skips", "forced"});
    }
    for (const auto& reply : RLOCK_TRY(ask_together(client, commands, exchange, end))) {
      const LockName& asked = *answered++;
      if (reply) {
        all.emplace(asked, read_totals(*reply));
        continue;
      }
      const bool too_long = reply.error().code == Error::Code::protocol;
      const bool passed_over = listing && (too_long || is_of_others(reply.error()));
      if (!passed_over && reply.error().code != Error::Code::wrong_kind) return std::unexpected(reply.error());
      if (too_long) log::warning(asked.display() + ": its totals cannot be read: " + reply.error().message);
    }
  }
  return all;
}

Result<bool> wanted_on(redis::Client& client, const std::vector<LockName>& names, milliseconds exchange) {
  const Until end = Until{}.at_most(kLongestReading * exchange);
  constexpr std::string_view kWords[] = {LockName::kHistory, LockName::kTotals, LockName::kHold};
  if (names.empty()) return !RLOCK_TRY(names_with(client, kWords, 0, exchange, end)).empty();
  Commands commands;
  for (const LockName& name : names) {
    commands.push_back({"EXISTS", name.history_key(), name.totals_key(), name.due_key()});
  }
  const auto replies = RLOCK_TRY(ask_together(client, commands, exchange, end));
  return std::ranges::any_of(replies, [](const auto& reply) { return reply && reply->as_number() > 0; });
}

}  // namespace

Result<void> each_past_hold(Servers& servers, const HistoryQuery& query, milliseconds exchange, const Each& each) {
  if (servers.size() == 1) return HistoryMerge(servers.client(0), query, exchange).run(each);
  for (const PastHold& hold : RLOCK_TRY(read_history(servers, query, exchange))) RLOCK_TRY(each(hold));
  return {};
}

Result<Past> read_history(Servers& servers, const HistoryQuery& query, milliseconds exchange) {
  auto given = RLOCK_TRY(servers.ask_most<Past>(
      [&](redis::Client& client, const Until&) { return read_one_server(client, query, exchange); }, exchange));
  if (servers.size() == 1) return std::move(given.front());
  return merged_holds(given, query.of_each ? kNoLimit : query.limit);
}

Result<NewestHolds> read_newest(Servers& servers, HistoryQuery query, milliseconds exchange) {
  const std::size_t limit = query.limit++;  // one more, to see whether there are older ones
  auto holds = RLOCK_TRY(read_history(servers, query, exchange));
  const bool older = holds.size() > limit;
  if (older) holds.pop_back();
  return NewestHolds{std::move(holds), older};
}

Result<TotalsOf> read_totals(Servers& servers, const std::vector<LockName>& names, milliseconds exchange) {
  const auto given = RLOCK_TRY(servers.ask_most<TotalsOf>(
      [&](redis::Client& client, const Until&) { return totals_on(client, names, exchange); }, exchange));
  TotalsOf all;
  for (const TotalsOf& one : given) {
    for (const auto& [name, totals] : one) {
      Totals& most = all[name];
      most = {std::max(most.losses, totals.losses), std::max(most.skips, totals.skips),
              std::max(most.forced, totals.forced)};
    }
  }
  return all;
}

Result<bool> history_is_wanted(Servers& servers, const std::vector<LockName>& names, milliseconds exchange) {
  const auto given = RLOCK_TRY(servers.ask_most<bool>(
      [&](redis::Client& client, const Until&) { return wanted_on(client, names, exchange); }, exchange));
  return std::ranges::find(given, true) != given.end();
}

}  // namespace rlock::lock
