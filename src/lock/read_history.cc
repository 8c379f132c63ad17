// SPDX-License-Identifier: MIT
#include "lock/read_history.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "lock/join_history.h"
#include "lock/listing.h"
#include "lock/tally.h"
#include "redis/server_info.h"

namespace rlock::lock {
namespace {

using Past = std::vector<PastHold>;

// Entries that are asked for at once. A page of long texts may be more than a reply may be: then of a few, or of one.
constexpr std::size_t kPage = 500, kShortPage = 20;
// Locks that are asked for together, and the entries that they may answer with together.
constexpr std::size_t kLocksTogether = 100, kEntriesTogether = 2000;

void warn(const LockName& name, const std::string& what) { log::warning(name.display() + ": its history: " + what); }

using Commands = std::vector<std::vector<std::string>>;

redis::Words words_of(const std::vector<std::string>& command) { return {command.begin(), command.end()}; }

Error takes_too_long() {
  return {Error::Code::unavailable, "reading the history takes too long; ask for less of it"};
}

// Sends commands that only read, all before the first reply. Those without an answer are sent again, alone: one that is
// too long costs all behind it theirs. Errors: it takes too long.
Result<std::vector<Result<redis::Reply>>> ask_together(redis::Client& client, const Commands& commands,
                                                       milliseconds exchange, const Until& end) {
  if (end.over()) return std::unexpected(takes_too_long());
  std::vector<redis::Words> all;
  for (const auto& command : commands) all.push_back(words_of(command));
  auto replies = client.call_all(all, end.at_most(exchange));
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (replies[i]) continue;
    const Error::Code code = replies[i].error().code;
    const bool unanswered = code == Error::Code::unavailable || code == Error::Code::protocol;
    if (unanswered) replies[i] = client.insist(all[i], end.at_most(exchange));
  }
  return replies;
}

// Entries that are asked for at first.
std::size_t first_page(const HistoryQuery& query) {
  return query.failed ? kPage : std::clamp(query.limit, std::size_t{1}, kPage);
}

bool is_wanted(const PastHold& hold, const HistoryQuery& query) {
  return !(query.failed && hold.fine()) && !(query.since && hold.ended < *query.since);
}

// The history of one lock, page by page.
class Reader {
 public:
  Reader(redis::Client& client, const LockName& name, const HistoryQuery& query, milliseconds exchange,
         const Until& end)
      : client_(client),
        name_(name),
        query_(query),
        exchange_(exchange),
        end_(end),
        key_(name.history_key()),
        page_(first_page(query)),
        found_([&query](const PastHold& hold) { return is_wanted(hold, query); }) {}

  // The next page.
  std::vector<std::string> command() const {
    return {"XREVRANGE", key_, newest_, "-", "COUNT", std::to_string(number_wanted())};
  }

  // All of it, which begins with `reply`, the one to the first command().
  Result<Past> read(Result<redis::Reply> reply) {
    RLOCK_TRY(take_page(std::move(reply)));
    while (!over_) {
      if (end_.over()) return std::unexpected(takes_too_long());
      const auto next = command();
      RLOCK_TRY(take_page(client_.insist(words_of(next), end_.at_most(exchange_))));
    }
    if (odd_ > 0) warn(name_, std::to_string(odd_) + " entries are not rlock's");
    return found_.take(query_.limit);
  }

 private:
  Result<void> take_page(Result<redis::Reply> reply) {
    const std::size_t page = number_wanted();
    if (!reply && reply.error().code == Error::Code::protocol) {
      ask_for_less(page, reply.error());
      return {};
    }
    if (!reply && reply.error().code == Error::Code::wrong_kind) {
      over_ = true;
      warn(name_, "the key " + escaped(key_) + " is no stream; delete it");
      return {};
    }
    RLOCK_TRY(reply);
    take(reply->elements);
    over_ = over_ || reply->elements.size() < page;
    page_ = std::min(page_ * 4, longest_);
    return {};
  }

  std::size_t number_wanted() const { return beyond_ ? std::min(page_, kShortPage) : page_; }

  // A reply of `page` entries is none that can be read: pages grow again, but to less than that. One entry alone cannot
  // be passed over: nobody knows its id.
  void ask_for_less(std::size_t page, const Error& error) {
    if (page == 1) {
      over_ = true;
      warn(name_, "it cannot be read from here on: " + error.message + "; delete the key " + escaped(key_));
    }
    longest_ = std::max(page - 1, std::size_t{1});
    page_ = page > kShortPage ? kShortPage : 1;
  }

  void take(const std::vector<redis::Reply>& entries) {
    bool too_old = false;
    for (const redis::Reply& entry : entries) {
      auto hold = read_entry(name_, entry);
      newest_ = "(" + entry.at(0).as_text();
      if (!hold) {
        ++odd_;
        continue;
      }
      too_old = query_.since && hold->written < *query_.since;
      found_.add(*std::move(hold));
    }
    const bool enough = too_old || found_.size() >= query_.limit;
    over_ = enough && (beyond_ || !found_.open());
    beyond_ = enough;  // the other entry of a hold stands a few entries further on, if there is one
  }

  redis::Client& client_;
  const LockName& name_;
  const HistoryQuery& query_;
  milliseconds exchange_;
  Until end_;
  std::string key_, newest_ = "+";
  std::size_t page_, longest_ = kPage, odd_ = 0;
  StreamOfHolds found_;
  bool over_ = false, beyond_ = false;
};

// How many holds there are follows the limit, or the number of names, which has one.
std::size_t size_of_texts(const PastHold& hold) {
  std::size_t size = 0;
  for (const std::string* text : {&hold.owner, &hold.token, &hold.kind, &hold.who.host, &hold.who.user,
                                  &hold.who.command, &hold.who.reason, &hold.end, &hold.why, &hold.by}) {
    size += text->size();
  }
  return size;
}

Result<Past> read_one_server(redis::Client& client, HistoryQuery query, milliseconds exchange) {
  const Until end = Until{}.at_most(kLongestReading * exchange);
  if (query.within) {
    const auto clock = RLOCK_TRY(redis::read_clock(client, end.at_most(exchange)));
    query.since = std::chrono::floor<milliseconds>(clock.server.value_or(clock.ours)) - *query.within;
  }
  std::set<LockName> names(query.names.begin(), query.names.end());
  const bool listing = names.empty();
  if (listing) names = RLOCK_TRY(names_with(client, LockName::kHistory, 0, exchange, end));
  Past all;
  std::size_t size = 0;
  const auto add = [&](const LockName& name, Result<Past> one) -> Result<void> {
    if (!one && listing && is_of_others(one.error())) return {};
    if (!one) return std::unexpected(Error(one.error()).in(name.display()));
    if (query.of_each) {
      for (const PastHold& hold : *one) size += size_of_texts(hold);
      RLOCK_TRY(within_list_limits(size, end));
    }
    all.insert(all.end(), std::make_move_iterator(one->begin()), std::make_move_iterator(one->end()));
    if (!query.of_each && all.size() > 2 * query.limit) all = newest_of(std::move(all), query.limit);
    return {};
  };
  const std::size_t together = std::clamp(kEntriesTogether / first_page(query), std::size_t{1}, kLocksTogether);
  for (auto name = names.begin(); name != names.end();) {
    std::vector<Reader> readers;
    Commands commands;
    std::vector<const LockName*> asked;
    for (; name != names.end() && readers.size() < together; ++name) {
      asked.push_back(&*name);
      commands.push_back(readers.emplace_back(client, *name, query, exchange, end).command());
    }
    auto replies = RLOCK_TRY(ask_together(client, commands, exchange, end));
    for (std::size_t i = 0; i < readers.size(); ++i) RLOCK_TRY(add(*asked[i], readers[i].read(std::move(replies[i]))));
  }
  const std::size_t limit = query.of_each ? all.size() : query.limit;
  return newest_of(std::move(all), limit);
}

using TotalsOf = std::map<LockName, Totals>;

Result<TotalsOf> totals_on(redis::Client& client, const std::vector<LockName>& named, milliseconds exchange) {
  const Until end = Until{}.at_most(kLongestReading * exchange);
  std::set<LockName> names(named.begin(), named.end());
  const bool listing = names.empty();
  if (listing) names = RLOCK_TRY(names_with(client, LockName::kTotals, sizeof(Totals), exchange, end));
  TotalsOf all;
  const auto add = [&](const LockName& name, const Result<redis::Reply>& reply) -> Result<void> {
    const bool passed_over = !reply && (reply.error().code == Error::Code::wrong_kind ||
                                        (listing && is_of_others(reply.error())));
    if (passed_over) return {};
    if (!reply && listing && reply.error().code == Error::Code::protocol) {
      log::warning(name.display() + ": its totals cannot be read: " + reply.error().message);
      return {};
    }
    RLOCK_TRY(reply);
    all.emplace(name, read_totals(*reply));
    return {};
  };
  for (auto name = names.begin(); name != names.end();) {
    RLOCK_TRY(within_list_limits(0, end));
    Commands commands;
    auto answered = name;
    for (; name != names.end() && commands.size() < kLocksTogether; ++name) {
      commands.push_back({"HMGET", name->totals_key(), "losses", "skips", "forced"});
    }
    const auto replies = RLOCK_TRY(ask_together(client, commands, exchange, end));
    for (const auto& reply : replies) RLOCK_TRY(add(*answered++, reply));
  }
  return all;
}

// The answers of those that have given one; each server of a quorum has written for itself.
template <class Answer, class Ask>
Result<std::vector<Answer>> ask_majority(Servers& servers, const Ask& ask, milliseconds exchange) {
  const auto answers = servers.ask_each<Answer>(
      [&](std::size_t, Member& member, const Until&) { return ask(member.client); }, exchange, Until{},
      [](const auto&, const auto&) { return false; });
  const auto errors = errors_in(answers);
  if (answers.size() - errors.size() < majority_of(answers.size())) {
    return std::unexpected(too_few(answers.size(), errors));
  }
  std::vector<Answer> given;
  for (const auto& answer : answers) {
    if (answer) given.push_back(*answer);
  }
  return given;
}

}  // namespace

Result<std::vector<PastHold>> read_history(Servers& servers, const HistoryQuery& query, milliseconds exchange) {
  if (!servers.is_quorum()) return read_one_server(servers.only(), query, exchange);
  const auto given = RLOCK_TRY(ask_majority<Past>(
      servers, [&](redis::Client& client) { return read_one_server(client, query, exchange); }, exchange));
  return merged_holds(given, query.of_each ? std::numeric_limits<std::size_t>::max() : query.limit);
}

Result<std::map<LockName, Totals>> read_totals(Servers& servers, const std::vector<LockName>& names,
                                               milliseconds exchange) {
  if (!servers.is_quorum()) return totals_on(servers.only(), names, exchange);
  const auto given = RLOCK_TRY(ask_majority<TotalsOf>(
      servers, [&](redis::Client& client) { return totals_on(client, names, exchange); }, exchange));
  TotalsOf all;
  for (const TotalsOf& one : given) {
    for (const auto& [name, totals] : one) {
      Totals& sum = all[name];
      sum = {std::max(sum.losses, totals.losses), std::max(sum.skips, totals.skips),
             std::max(sum.forced, totals.forced)};
    }
  }
  return all;
}

}  // namespace rlock::lock
