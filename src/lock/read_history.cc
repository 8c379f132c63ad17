// SPDX-License-Identifier: MIT
#include "lock/read_history.h"

#include <limits>

#include "base/log.h"
#include "lock/listing.h"

namespace rlock::lock {
namespace {

using redis::Reply;
using Past = std::vector<PastHold>;
using Each = std::function<Result<void>(const PastHold&)>;
using Command = std::vector<std::string>;

// Locks in one exchange, and entries in their replies together.
constexpr std::size_t kTogether = 100, kEntriesTogether = 2000;
// Entries in one reply. If a page with long texts is too long for a reply, a few or one are asked for.
constexpr std::size_t kPage = 500, kShortPage = 20;
constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
// In bytes; the first as in lua/features/08_history.lua.
constexpr std::size_t kLongestOwner = 512, kLongestScore = 32;
// Keys by which locks with a history are found.
constexpr Companion kHistories[] = {lua::kHistory, lua::kHold};

// Sends commands that only read, in one exchange. Those without an answer are sent again alone, because a reply that is
// too long loses all replies after it. Errors: the time is over.
Result<std::vector<Result<Reply>>> ask_together(const Reading& on, const std::vector<Command>& commands) {
  if (on.end.over()) return fail(Error::Code::unavailable, "reading the history takes too long; ask for less of it");
  std::vector<redis::Words> all;
  for (const Command& command : commands) all.emplace_back(command.begin(), command.end());
  auto replies = on.client.call_all(all, on.next());
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i]) continue;
    const Error::Code code = replies[i].error().code;
    const bool unanswered = code == Error::Code::unavailable || code == Error::Code::protocol;
    if (unanswered) replies[i] = on.client.insist(all[i], on.next());
  }
  return replies;
}

// Asks `command(item)` for each item, and gives the answer to `take(item, reply)`. Errors: also those of `take`.
template <class Items, class Ask, class Take>
Result<void> ask_for_each(const Reading& on, Items& items, const Ask& command, const Take& take) {
  for (auto next = items.begin(); next != items.end();) {
    auto answered = next;
    std::vector<Command> commands;
    for (; next != items.end() && commands.size() < kTogether; ++next) commands.push_back(command(*next));
    for (const auto& reply : RLOCK_TRY(ask_together(on, commands))) RLOCK_TRY(take(*answered++, reply));
  }
  return {};
}

struct DueHold {
  LockName name;
  std::string owner, ended;
};

constexpr const char* kDueFields[] = {"since", "token", "history", "host", "pid", "user", "command", "reason", "slots"};

// `reply`: to HMGET of kDueFields.
std::optional<PastHold> expired_hold(const DueHold& due, const Result<Reply>& reply) {
  std::map<std::string, std::string> known = {{"outcome", "gone"}, {"end", "expired"}, {"owner", due.owner}};
  for (std::size_t i = 0; reply && i < std::size(kDueFields); ++i) known[kDueFields[i]] = reply->at(i).as_text();
  known["kind"] = known["history"];
  auto hold = read_entry(due.name, due.ended, known);
  const auto since = whole_number(known["since"]);
  if (hold && since && *since >= 0 && *since <= hold->ended.count()) hold->held = hold->ended - milliseconds(*since);
  return hold;
}

// The holds of these locks that need an entry and have none yet, because their lease has ended, as the next grant will
// record them (lua/features/08_history.lua). Up to a hundred for each lock, newest first. Ignores unreadable locks.
Result<Past> read_due(const Reading& on, const std::set<LockName>& names) {
  std::vector<DueHold> due;
  Past holds;
  std::size_t size = 0;
  const std::string now = names.empty() ? "" : std::to_string(RLOCK_TRY(clock_of(on.client, on.next())).count());
  const auto owners_of = [&](const LockName& name) -> Command {
    return {"ZREVRANGEBYSCORE", name.due_key(), now, "0", "WITHSCORES", "LIMIT", "0", std::to_string(kTogether)};
  };
  RLOCK_TRY(ask_for_each(on, names, owners_of, [&](const LockName& name, const Result<Reply>& reply) -> Result<void> {
    for (std::size_t i = 0; reply && i + 1 < reply->elements.size(); i += 2) {
      DueHold one{name, reply->at(i).as_text(), reply->at(i + 1).as_text()};
      if (one.owner.size() > kLongestOwner || one.ended.size() > kLongestScore) continue;
      size += sizeof one + name.text().size() + one.owner.size() + one.ended.size();
      due.push_back(std::move(one));
    }
    return within_list_limits(size, on.end);
  }));
  const auto fields_of = [](const DueHold& one) {
    Command command = {"HMGET", one.name.entry_key(one.owner)};
    command.insert(command.end(), std::begin(kDueFields), std::end(kDueFields));
    return command;
  };
  RLOCK_TRY(ask_for_each(on, due, fields_of, [&](const DueHold& one, const Result<Reply>& reply) -> Result<void> {
    auto hold = expired_hold(one, reply);
    if (!hold) return {};
    size += size_of(*hold);
    holds.push_back(*std::move(hold));
    return within_list_limits(size, on.end);
  }));
  return newest_of(std::move(holds), kNoLimit);
}

// The holds of one lock, read page by page; or those that are in no history yet, of all locks.
class Source : public StreamOfHolds {
 public:
  // `page`: entries in the first reply; `longest`: most in a later one; 0: none. References must outlive this object.
  Source(const LockName* name, const HistoryQuery& query, std::size_t page, std::size_t longest, std::size_t number)
      : StreamOfHolds([&query](const PastHold& hold) { return query.wants(hold); }),
        name_(name),
        query_(query),
        page_(page),
        longest_(longest),
        number_(number),
        read_(longest == 0) {}

  // For the next page.
  Command command() const {
    return {"XREVRANGE", name_->history_key(), newest_, "-", "COUNT", std::to_string(number_wanted())};
  }

  // Takes the reply. Returns its error, unless the key is not a stream or the page was too long.
  Result<void> take_page(const Result<Reply>& reply) {
    const std::size_t page = number_wanted();
    if (!reply && reply.error().code == Error::Code::protocol) {
      ask_for_less(page, reply.error());
    } else if (!reply && reply.error().code == Error::Code::wrong_kind) {
      read_ = true;
      warn("the key " + escaped(name_->history_key()) + " is not a stream; delete it");
    } else {
      RLOCK_TRY(reply);
      add_entries(reply->elements);
      read_ = read_ || reply->elements.size() < page;
      page_ = std::min(page_ * 4, longest_);
    }
    if (read_ && odd_ > 0) warn(std::to_string(odd_) + " entries were not written by rlock");
    return {};
  }

  // The newest hold can be taken, no matter what the next pages say.
  bool ready() const { return next(far()); }
  // No more pages are needed, and everything was taken.
  bool over() const { return read_ && count() == 0; }

  // Updates by what sources are sorted: when the next hold was written, or the latest time at which it can have been.
  void set_next() {
    if (const PastHold* hold = next(far())) next_ = hold->written;
  }
  bool comes_before(const Source& other) const {
    return next_ != other.next_ ? next_ > other.next_ : number_ < other.number_;
  }

 private:
  std::size_t number_wanted() const { return beyond_ ? std::min(page_, kShortPage) : page_; }
  std::size_t far() const { return read_ ? 0 : std::max(longest_, kShortPage); }

  void warn(const std::string& what) const { log::warning(name_->display() + ": its history: " + what); }

  // A reply of `page` entries is too long, so later pages are smaller. One entry cannot be skipped: its id is unknown.
  void ask_for_less(std::size_t page, const Error& error) {
    if (page == 1) {
      read_ = true;
      warn("it cannot be read from here on: " + error.message + "; delete the key " + escaped(name_->history_key()));
    }
    longest_ = std::max(page - 1, std::size_t{1});
    page_ = page > kShortPage ? kShortPage : 1;
  }

  void add_entries(const std::vector<Reply>& entries) {
    bool too_old = false;
    for (const Reply& entry : entries) {
      auto hold = read_entry(*name_, entry);
      newest_ = "(" + entry.at(0).as_text();
      if (!hold) {
        ++odd_;
        continue;
      }
      too_old = query_.since && hold->written < *query_.since;
      add(*std::move(hold));
    }
    const bool enough = too_old || count() >= query_.limit;
    read_ = enough && (beyond_ || !open());
    beyond_ = enough;  // the other entry of a hold, if any, is among the next few
  }

  const LockName* name_;
  const HistoryQuery& query_;
  std::string newest_ = "+";
  std::size_t page_, longest_;
  std::size_t number_;  // holds written at the same time are sorted by this, the order of the names
  std::size_t odd_ = 0;
  milliseconds next_ = milliseconds::max();
  bool read_, beyond_ = false;
};

struct Sooner {
  bool operator()(const auto& one, const auto& other) const { return one->comes_before(*other); }
};

class HistoryMerge {
 public:
  // `found`: the names were found in the database, so it may be that the user has no right to some.
  HistoryMerge(redis::Client& client, HistoryQuery query, milliseconds exchange, bool found = false)
      : on_{client, exchange}, query_(std::move(query)), listing_(found || query_.names.empty()) {
    if (!query_.of_each) limit_ = std::exchange(query_.limit, kNoLimit);  // a lock may have them all
  }

  Result<void> run(const Each& each) {
    if (query_.within) query_.since = RLOCK_TRY(clock_of(on_.client, on_.next())) - *query_.within;
    names_ = {query_.names.begin(), query_.names.end()};
    if (names_.empty()) names_ = RLOCK_TRY(names_with(on_, kHistories));
    RLOCK_TRY(begin());
    if (!query_.of_each) RLOCK_TRY(add_due());
    const std::size_t most = query_.fits ? kLongestList : kNoLimit;
    for (std::size_t told = 0, size = 0; told < limit_ && size <= most && !waiting_.empty();) {
      if (!(*waiting_.begin())->ready()) {
        RLOCK_TRY(load());
        continue;
      }
      auto first = std::move(waiting_.extract(waiting_.begin()).value());
      const PastHold hold = first->take();
      size_ -= size_of(hold);
      size += size_of(hold);
      wait_with(std::move(first));
      const TimePoint before = BootClock::now();
      RLOCK_TRY(each(hold));
      on_.end.deadline += BootClock::now() - before;
      ++told;
    }
    return {};
  }

 private:
  using Sources = std::vector<std::unique_ptr<Source>>;

  Result<void> begin() {
    const std::size_t locks = std::max(names_.size(), std::size_t{1});
    const std::size_t longest = std::clamp(kEntriesTogether / locks, std::size_t{1}, kPage);
    const std::size_t wanted = std::max(std::min(limit_, query_.limit), std::size_t{1});
    const std::size_t page = query_.failed || query_.fine ? longest : std::min(wanted, longest);
    Sources some;
    std::size_t number = 0;
    for (const LockName& name : names_) {
      some.push_back(std::make_unique<Source>(&name, query_, page, longest, number++));
      if (some.size() < kTogether) continue;
      RLOCK_TRY(load(std::exchange(some, {})));
      drop_superfluous();
    }
    return load(std::move(some));
  }

  // Adds the holds that are in no history yet.
  Result<void> add_due() {
    auto due = std::make_unique<Source>(nullptr, query_, 0, 0, names_.size());
    for (PastHold& hold : RLOCK_TRY(read_due(on_, names_))) due->add(std::move(hold));
    size_ += due->size();
    wait_with(std::move(due));
    return {};
  }

  // Of the sources with a known hold, keeps only as many with the newest ones as the limit: there may be many locks.
  void drop_superfluous() {
    std::size_t newer = 0;
    for (auto next = waiting_.begin(); limit_ != kNoLimit && next != waiting_.end();) {
      const auto one = next++;
      if (!(*one)->ready() || newer++ < limit_) continue;
      size_ -= (*one)->size();
      waiting_.erase(one);
    }
  }

  // Loads the next page of the first source, and of those that will need one next.
  Result<void> load() {
    Sources some;
    std::size_t others = 0;
    for (auto next = waiting_.begin(); next != waiting_.end() && some.size() < kTogether && others < kTogether;) {
      const auto one = next++;
      if ((*one)->ready()) {
        ++others;
      } else {
        some.push_back(std::move(waiting_.extract(one).value()));
      }
    }
    return load(std::move(some));
  }

  Result<void> load(Sources some) {
    const auto command = [](const std::unique_ptr<Source>& source) { return source->command(); };
    return ask_for_each(on_, some, command, [&](auto& source, const Result<Reply>& reply) -> Result<void> {
      size_ -= source->size();
      const auto taken = source->take_page(reply);
      if (!taken && listing_ && is_of_others(taken.error())) return {};
      RLOCK_TRY(taken);
      size_ += source->size();
      RLOCK_TRY(within_list_limits(size_, on_.end));
      wait_with(std::move(source));
      return {};
    });
  }

  void wait_with(std::unique_ptr<Source> source) {
    source->set_next();
    if (!source->over()) waiting_.insert(std::move(source));
  }

  Reading on_;
  HistoryQuery query_;
  std::size_t limit_ = kNoLimit;
  std::set<LockName> names_;
  const bool listing_;
  std::size_t size_ = 0;  // of all holds in the sources, in bytes
  std::set<std::unique_ptr<Source>, Sooner> waiting_;
};

// Some holds of each lock. The number of locks has no limit, so if one hold of each is too many, some are left out.
Result<Past> read_of_each(redis::Client& client, HistoryQuery query, milliseconds exchange) {
  const Reading on{client, exchange};
  FewNames found(kNoLimit);
  for (const LockName& name : query.names) found.add(name);
  const bool listing = query.names.empty();
  if (listing) {
    for (const LockName& name : RLOCK_TRY(names_with(on, kHistories))) found.add(name);
  }
  const std::vector<LockName> names = found.in_turns();
  Past all;
  std::size_t size = 0, done = 0;
  while (done < names.size() && size <= kLongestList) {
    const auto some = std::span(names).subspan(done, std::min(kTogether, names.size() - done));
    query.names.assign(some.begin(), some.end());
    std::map<LockName, std::size_t> of_lock;
    RLOCK_TRY(HistoryMerge(client, query, exchange, listing).run([&](const PastHold& hold) -> Result<void> {
      if (++of_lock[hold.name] > query.limit) return {};
      all.push_back(hold);
      size += size_of(hold);
      return within_list_limits(query.limit > 1 ? size : 0, on.end);
    }));
    done += some.size();
  }
  if (done < names.size()) {
    log::warning("the last holds of " + std::to_string(names.size() - done) +
                 " locks are left out, because they may take " + std::to_string(kLongestList >> 20) + " MiB together");
  }
  return newest_of(std::move(all), kNoLimit);
}

Result<Past> read_one_server(redis::Client& client, const HistoryQuery& query, milliseconds exchange) {
  if (query.of_each) return read_of_each(client, query, exchange);
  Past all;
  RLOCK_TRY(HistoryMerge(client, query, exchange).run([&](const PastHold& hold) -> Result<void> {
    all.push_back(hold);
    return {};
  }));
  return newest_of(std::move(all), kNoLimit);
}

using TotalsOf = std::map<LockName, Totals>;

Result<TotalsOf> totals_on(redis::Client& client, const std::vector<LockName>& named, milliseconds exchange) {
  const Reading on{client, exchange};
  std::set<LockName> names(named.begin(), named.end());
  const bool listing = names.empty();
  if (listing) names = RLOCK_TRY(names_with(on, std::array{lua::kTotals}));
  TotalsOf all;
  const auto ask = [](const LockName& name) {
    Command command = {"HMGET", name.totals_key()};
    for (auto& [field, number] : Totals().fields()) command.push_back(std::move(field));
    return command;
  };
  RLOCK_TRY(ask_for_each(on, names, ask, [&](const LockName& name, const Result<Reply>& reply) -> Result<void> {
    if (reply) {
      all.emplace(name, read_totals(*reply));
      return {};
    }
    const bool too_long = reply.error().code == Error::Code::protocol;
    const bool passed_over = listing && (too_long || is_of_others(reply.error()));
    if (!passed_over && reply.error().code != Error::Code::wrong_kind) return std::unexpected(reply.error());
    if (too_long) log::warning(name.display() + ": its totals cannot be read: " + reply.error().message);
    return {};
  }));
  return all;
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
  std::size_t size = 0;
  for (const PastHold& hold : holds) size += size_of(hold);
  const bool over = holds.size() > limit, older = over || (query.fits && size > kLongestList);
  if (over) holds.pop_back();
  return NewestHolds{std::move(holds), older};
}

Result<TotalsOf> read_totals(Servers& servers, const std::vector<LockName>& names, milliseconds exchange) {
  const auto given = RLOCK_TRY(servers.ask_most<TotalsOf>(
      [&](redis::Client& client, const Until&) { return totals_on(client, names, exchange); }, exchange));
  TotalsOf all;
  for (const TotalsOf& one : given) {
    for (auto [name, totals] : one) {
      const auto most = all[name].fields(), here = totals.fields();
      for (std::size_t i = 0; i < most.size(); ++i) *most[i].second = std::max(*most[i].second, *here[i].second);
    }
  }
  return all;
}

}  // namespace rlock::lock
