// SPDX-License-Identifier: MIT
// rlock history: the holds that are over.
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/date.h"
#include "cli/commands.h"
#include "show/history.h"
#include "show/json.h"
#include "show/print.h"
#include "cli/server.h"
#include "lock/read_history.h"

namespace rlock::cli {
namespace {

using Output = HistoryOptions::Output;

constexpr const char* kNothingYet =
    "nothing yet: a job has asked for a history, and its hold is written down when it is over\n";
constexpr const char* kNoneOfThose = "no such holds are written down here\n";

constexpr const char* kOlder = "older holds: --limit\n";

// The newest that were asked for; whether there are older ones.
struct Found {
  std::vector<lock::PastHold> holds;
  bool older = false;
  bool wanted = true;  // false: there are none, because nobody has asked for any
};

std::string nobody_has_asked(std::size_t names) {
  const auto [who, what] = names == 0   ? std::pair("no job", "jobs")
                           : names == 1 ? std::pair("no job of this name", "it")
                                        : std::pair("no job of these names", "them");
  return std::string(who) + " has asked for a history in the last 30 days; run " + what +
         " with --history, or with RLOCK_HISTORY=true\n";
}

// Not all of them: that there are none says nothing of the others.
bool wants_some(const HistoryOptions& options) { return options.failed || options.since; }

std::size_t limit_of(const HistoryOptions& options) { return static_cast<std::size_t>(*options.limit); }

lock::HistoryQuery query_of(const HistoryOptions& options, std::size_t limit) {
  lock::HistoryQuery query{.names = options.names, .limit = limit, .failed = options.failed};
  if (options.since) (options.since->before_now ? query.within : query.since) = options.since->time;
  return query;
}

Result<Found> find(const HistoryOptions& options) {
  lock::Servers client = RLOCK_TRY(client_for(options));
  const std::size_t limit = limit_of(options);
  Found found{RLOCK_TRY(lock::read_history(client, query_of(options, limit + 1), options.timeout))};
  found.older = found.holds.size() > limit;
  if (found.older) found.holds.pop_back();
  if (found.holds.empty() && options.output != Output::html && !wants_some(options)) {
    found.wanted = RLOCK_TRY(lock::history_is_wanted(client, options.names, options.timeout));
  }
  return found;
}

// As they come.
Result<void> print_json(const HistoryOptions& options) {
  lock::Servers client = RLOCK_TRY(client_for(options));
  HoldsAsJson json(print);
  RLOCK_TRY(lock::each_past_hold(client, query_of(options, limit_of(options)), options.timeout,
                                 [&](const lock::PastHold& hold) { return json.add(hold); }));
  return json.end();
}

Result<void> show(const Found& found, const HistoryOptions& options) {
  const auto& holds = found.holds;
  const Screen screen = Screen::of_output();
  const bool to_people_here = options.output != Output::html && isatty(STDOUT_FILENO) == 1;
  const Zone zone = options.local || to_people_here ? Zone::local : Zone::utc;
  switch (options.output) {
    case Output::html: {
      const std::string page = history_page(holds, found.older, since_1970(), zone);
      return options.html == "-" ? print(page) : write_file(options.html, page);
    }
    case Output::json:
    case Output::timeline:
    case Output::people: break;
  }
  if (holds.empty()) {
    if (wants_some(options)) return print(fitted(kNoneOfThose, screen));
    return print(fitted(found.wanted ? kNothingYet : nobody_has_asked(options.names.size()), screen));
  }
  const std::string text =
      options.output == Output::timeline ? timeline(holds, screen, zone) : history_table(holds, screen, zone);
  return print(text + (found.older ? fitted(kOlder, screen) : ""));
}

}  // namespace

Result<int> execute(const HistoryOptions& options) {
  if (options.output == Output::json) {
    RLOCK_TRY(print_json(options));
    return kDone;
  }
  RLOCK_TRY(show(RLOCK_TRY(find(options)), options));
  return kDone;
}

}  // namespace rlock::cli
