// SPDX-License-Identifier: MIT
#include "lock/stream_history.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <queue>
#include <set>
#include <utility>

#include "lock/due.h"
#include "lock/history_reader.h"
#include "lock/listing.h"
#include "lock/read_history.h"

namespace rlock::lock {
namespace {

// Locks that are asked for together, and the entries that they may answer with together.
constexpr std::size_t kLocksTogether = 100, kEntriesTogether = 2000;

using Each = std::function<Result<void>(const PastHold&)>;

struct Source {
  std::optional<HistoryReader> reader;  // none: all of it is ready
  std::size_t number;        // those of the same time come in the order of their names
  milliseconds next{};       // when its next hold was written, or no earlier than that
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

class Merge {
 public:
  Merge(redis::Client& client, HistoryQuery query, milliseconds exchange)
      : client_(client), query_(std::move(query)), limit_(query_.limit), exchange_(exchange) {
    query_.limit = std::numeric_limits<std::size_t>::max();  // as many of each lock as the others leave
  }

  Result<void> run(const Each& each) {
    RLOCK_TRY(set_since(client_, query_, end_.at_most(exchange_)));
    names_ = {query_.names.begin(), query_.names.end()};
    listing_ = names_.empty();
    if (listing_) names_ = RLOCK_TRY(names_with(client_, kHistories, 0, exchange_, end_));
    RLOCK_TRY(begin());
    RLOCK_TRY(add_due());
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
  static std::size_t size_of(const PastHold& hold) { return sizeof hold + size_of_texts(hold); }

  // The first page of each.
  Result<void> begin() {
    const std::size_t locks = std::max(names_.size(), std::size_t{1});
    const std::size_t longest = std::clamp(kEntriesTogether / locks, std::size_t{1}, kPage);
    const std::size_t page = query_.failed ? longest : std::clamp(limit_, std::size_t{1}, longest);
    std::vector<Source*> some;
    for (const LockName& name : names_) {
      sources_.push_back(std::make_unique<Source>(
          HistoryReader(client_, name, query_, exchange_, end_, page, longest), sources_.size()));
      some.push_back(sources_.back().get());
      if (some.size() < kLocksTogether) continue;
      RLOCK_TRY(load(some));
      some.clear();
      forget_late_ones();
    }
    return load(some);
  }

  // The holds that no history has yet.
  Result<void> add_due() {
    auto due = std::make_unique<Source>(std::nullopt, sources_.size());
    for (PastHold& hold : RLOCK_TRY(read_due(client_, names_, exchange_, end_))) {
      if (!is_wanted(hold, query_)) continue;
      size_ += size_of(hold);
      due->ready.push_back(std::move(hold));
    }
    wait_with(*due, milliseconds::max());
    sources_.push_back(std::move(due));
    return {};
  }

  // Those of which as many others have a newer hold as are wanted: there may be many locks, and a low limit.
  void forget_late_ones() {
    if (waiting_.size() < 2 * limit_ + kLocksTogether) return;
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

  // Of the first one, and of those that come next to need it.
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
    auto taken = source.reader->take_page(std::move(reply));
    if (!taken && listing_ && is_of_others(taken.error())) return {};
    if (!taken) return std::unexpected(std::move(taken).error().in(source.reader->name().display()));
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

  // `latest`: none of its further holds was written later.
  void wait_with(Source& source, milliseconds latest) {
    source.next = source.ready.empty() ? latest : source.ready.front().written;
    if (!source.over()) waiting_.push(&source);
  }

  redis::Client& client_;
  HistoryQuery query_;
  const std::size_t limit_;
  const milliseconds exchange_;
  Until end_ = Until{}.at_most(kLongestReading * exchange_);
  std::set<LockName> names_;
  bool listing_ = false;
  std::size_t size_ = 0;  // of all holds that are ready or held back
  std::vector<std::unique_ptr<Source>> sources_;
  Waiting waiting_;
};

}  // namespace

Result<void> each_past_hold(Servers& servers, const HistoryQuery& query, milliseconds exchange, const Each& each) {
  if (!servers.is_quorum()) return Merge(servers.only(), query, exchange).run(each);
  for (const PastHold& hold : RLOCK_TRY(read_history(servers, query, exchange))) RLOCK_TRY(each(hold));
  return {};
}

}  // namespace rlock::lock
