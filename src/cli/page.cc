// SPDX-License-Identifier: MIT
#include "cli/page.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/duration.h"
#include "base/exit_status.h"
#include "lock/read_history.h"
#include "show/page.h"
#include "show/print.h"

namespace rlock::cli {
namespace {

void add_remark(std::string& text, const std::string& remark) { text += (text.empty() ? "" : ", ") + remark; }

std::string chosen(const lock::HistoryQuery& query, Zone zone) {
  std::string text;
  if (query.failed) add_remark(text, "only failures");
  if (query.since) add_remark(text, "since " + date_text(*query.since, zone));
  if (query.within) add_remark(text, "of the last " + format_duration(*query.within));
  return text;
}

// If there are so many locks that their holds take more memory than a list may, reads fewer of each.
Result<void> add_holds(PageFacts& facts, lock::Servers& servers, lock::HistoryQuery query, milliseconds exchange) {
  constexpr std::size_t kFewer = 4;
  facts.about_holds = chosen(query, facts.zone);
  facts.only_failures = query.failed;
  facts.chosen = !facts.about_holds.empty();
  if (!query.of_each) {
    auto newest = RLOCK_TRY(lock::read_newest(servers, query, exchange));
    facts.holds = std::move(newest.holds);
    if (newest.older) add_remark(facts.about_holds, "the newest ones (use --limit for older ones)");
    return {};
  }
  auto holds = lock::read_history(servers, query, exchange);
  while (!holds && holds.error().code == Error::Code::protocol && query.limit > 1) {
    query.limit = std::max(query.limit / kFewer, std::size_t{1});
    holds = lock::read_history(servers, query, exchange);
  }
  facts.holds = RLOCK_TRY(std::move(holds));
  add_remark(facts.about_holds, "at most " + std::to_string(query.limit) + " of each lock");
  return {};
}

}  // namespace

Result<int> write_page(lock::Servers& servers, const Question& question, const lock::HistoryQuery& query,
                       const PageOptions& options) {
  PageFacts facts{.now = since_1970(), .zone = options.zone};
  RLOCK_TRY(add_holds(facts, servers, query, question.exchange));
  auto totals = lock::read_totals(servers, query.names, question.exchange);
  if (!totals && totals.error().code != Error::Code::denied) return std::unexpected(std::move(totals).error());
  if (totals) facts.totals = *std::move(totals);
  std::set<lock::LockName> past;
  for (const lock::PastHold& hold : facts.holds) past.insert(hold.name);
  // Jobs that did not get a lock have no holds.
  for (const auto& [name, unused] : facts.totals) {
    if (!options.only_history) past.insert(name);
  }
  auto locks = look(servers, question, -1, past, &facts.refused);
  if (locks) {
    facts.locks = *std::move(locks);
  } else if (options.only_history && locks.error().code == Error::Code::denied) {
    facts.remarks.push_back("It is unknown who holds the locks now: " + locks.error().message);
  } else {
    return std::unexpected(std::move(locks).error());
  }
  if (facts.refused > 0) facts.remarks.push_back("It is " + unknown_holders(facts.refused));
  for (auto& remark : silent_servers(servers)) facts.remarks.push_back(std::move(remark));
  for (auto& remark : held_back(servers, question.exchange)) facts.remarks.push_back(std::move(remark));
  const std::string page = page_text(facts);
  RLOCK_TRY(options.file == "-" ? print(page) : write_file(options.file, page));
  return kDone;
}

}  // namespace rlock::cli
