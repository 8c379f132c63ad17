// SPDX-License-Identifier: MIT
// rlock history: shows past holds.
#include "show/history.h"

#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/date.h"
#include "cli/commands.h"
#include "cli/page.h"
#include "cli/server.h"
#include "lock/read_history.h"
#include "show/json.h"
#include "show/print.h"

namespace rlock::cli {
namespace {

std::string nothing_recorded(std::size_t names) {
  const auto [who, what] = names == 0   ? std::pair("no job", "jobs")
                           : names == 1 ? std::pair("no job of this name", "it")
                                        : std::pair("no job of these names", "them");
  return std::string(who) + " has asked for a history in the last 30 days; run " + what +
         " with --history, or with RLOCK_HISTORY=true\n";
}

Result<void> print_json(lock::Servers& servers, const lock::HistoryQuery& query, milliseconds exchange) {
  HoldsAsJson json(print);
  RLOCK_TRY(lock::each_past_hold(servers, query, exchange, [&](const lock::PastHold& hold) { return json.add(hold); }));
  return json.end();
}

// `chosen`: the query leaves out some holds, so there may be others.
Result<void> print_empty(lock::Servers& servers, const lock::HistoryQuery& query, bool chosen, milliseconds exchange) {
  const Screen screen = Screen::of_output();
  if (chosen) return print(fitted("no such holds are recorded here\n", screen));
  const bool wanted = RLOCK_TRY(lock::history_is_wanted(servers, query.names, exchange));
  return print(fitted(wanted ? "nothing yet: a job has asked for a history, and rlock records its hold when it ends\n"
                             : nothing_recorded(query.names.size()),
                      screen));
}

lock::HistoryQuery query_for(const HistoryOptions& options) {
  lock::HistoryQuery query{
      .names = options.names, .limit = static_cast<std::size_t>(*options.limit), .failed = options.failed};
  if (options.since) (options.since->before_now ? query.within : query.since) = options.since->time;
  return query;
}

}  // namespace

Result<int> execute(HistoryOptions& options) {
  using enum HistoryOptions::Output;
  const lock::HistoryQuery query = query_for(options);
  lock::Servers servers = RLOCK_TRY(client_for(options));
  if (options.output == json) {
    RLOCK_TRY(print_json(servers, query, options.timeout));
    return kDone;
  }

  if (options.output == html) {
    const Question question{
        .names = options.names, .strings = options.like != nullptr, .exchange = options.timeout, .deadlocks = true};
    return write_page(servers, question, query,
                      {.file = options.html, .zone = options.local ? Zone::local : Zone::utc, .only_history = true});
  }

  const auto [holds, older] = RLOCK_TRY(lock::read_newest(servers, query, options.timeout));
  const Zone zone = options.local || isatty(STDOUT_FILENO) ? Zone::local : Zone::utc;
  if (holds.empty()) {
    RLOCK_TRY(print_empty(servers, query, options.failed || options.since, options.timeout));
  } else {
    const auto picture = options.output == HistoryOptions::Output::timeline ? &rlock::cli::timeline : &history_table;
    const Screen screen = Screen::of_output();
    RLOCK_TRY(print(picture(holds, screen, zone) + fitted(older ? "for older holds, use --limit\n" : "", screen)));
  }
  return kDone;
}

}  // namespace rlock::cli
