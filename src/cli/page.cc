// SPDX-License-Identifier: MIT
#include "cli/page.h"

#include <utility>

#include "base/exit_status.h"
#include "lock/read_history.h"
#include "show/page.h"
#include "show/print.h"

namespace rlock::cli {

Result<int> write_page(lock::Servers& servers, const Question& question, const lock::HistoryQuery& query,
                       const PageOptions& options) {
  PageFacts facts{.now = since_1970(), .zone = options.zone};
  if (query.of_each) facts.about_holds = "at most " + std::to_string(query.limit) + " of each lock";
  lock::HistoryQuery more = query;
  if (!query.of_each) ++more.limit;  // one more, to see whether there are older holds
  facts.holds = RLOCK_TRY(lock::read_history(servers, more, question.exchange));
  if (!query.of_each && facts.holds.size() > query.limit) {
    facts.holds.pop_back();
    facts.about_holds = "the newest ones (use --limit for older ones)";
  }
  auto totals = lock::read_totals(servers, query.names, question.exchange);
  if (!totals && totals.error().code != Error::Code::denied) return std::unexpected(std::move(totals).error());
  if (totals) facts.totals = *std::move(totals);
  std::set<lock::LockName> past;
  for (const lock::PastHold& hold : facts.holds) past.insert(hold.name);
  auto locks = look(servers, question, -1, past);
  if (locks) {
    facts.locks = *std::move(locks);
  } else if (options.only_history && locks.error().code == Error::Code::denied) {
    facts.remarks.push_back("It is unknown who holds the locks now: " + locks.error().message);
  } else {
    return std::unexpected(std::move(locks).error());
  }
  for (auto& remark : silent_servers(servers)) facts.remarks.push_back(std::move(remark));
  for (auto& remark : held_back(servers, question.exchange)) facts.remarks.push_back(std::move(remark));
  const std::string page = page_text(facts);
  RLOCK_TRY(options.file == "-" ? print(page) : write_file(options.file, page));
  return kDone;
}

}  // namespace rlock::cli
