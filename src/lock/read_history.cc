// SPDX-License-Identifier: MIT
#include "lock/read_history.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

#include "base/log.h"
#include "lock/due.h"
#include "lock/history_reader.h"
#include "lock/join_history.h"
#include "lock/listing.h"
#include "lock/tally.h"

namespace rlock::lock {
namespace {

using Past = std::vector<PastHold>;

// Locks that are asked for together, and the entries that they may answer with together.
constexpr std::size_t kLocksTogether = 100, kEntriesTogether = 2000;

// Entries that are asked for at first.
std::size_t first_page(const HistoryQuery& query) {
  return query.failed ? kPage : std::clamp(query.limit, std::size_t{1}, kPage);
}

Result<Past> read_one_server(redis::Client& client, HistoryQuery query, milliseconds exchange) {
  const Until end = Until{}.at_most(kLongestReading * exchange);
  RLOCK_TRY(set_since(client, query, end.at_most(exchange)));
  std::set<LockName> names(query.names.begin(), query.names.end());
  const bool listing = names.empty();
  if (listing) names = RLOCK_TRY(names_with(client, kHistories, 0, exchange, end));
  Past all;
  if (!query.of_each) all = RLOCK_TRY(read_due(client, names, exchange, end));
  std::erase_if(all, [&](const PastHold& hold) { return !is_wanted(hold, query); });
  std::size_t size = 0;
  const auto add = [&](const LockName& name, Result<Past> one) -> Result<void> {
    if (!one && listing && is_of_others(one.error())) return {};
    if (!one) return std::unexpected(Error(one.error()).in(name.display()));
    // How many holds there are follows the limit, or the number of names, which has one.
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
    std::vector<HistoryReader> readers;
    Commands commands;
    std::vector<const LockName*> asked;
    for (; name != names.end() && readers.size() < together; ++name) {
      asked.push_back(&*name);
      commands.push_back(readers.emplace_back(client, *name, query, exchange, end, first_page(query)).command());
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

Result<bool> history_is_wanted(Servers& servers, const std::vector<LockName>& names, milliseconds exchange) {
  if (!servers.is_quorum()) return wanted_on(servers.only(), names, exchange);
  const auto given = RLOCK_TRY(ask_majority<bool>(
      servers, [&](redis::Client& client) { return wanted_on(client, names, exchange); }, exchange));
  return std::ranges::find(given, true) != given.end();
}

}  // namespace rlock::lock
