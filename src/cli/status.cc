// SPDX-License-Identifier: MIT
// rlock status and rlock history: who holds which locks, and who has held them. They share the page of --html.
#include <unistd.h>

#include "cli/commands.h"
#include "cli/server.h"
#include "lock/read_history.h"
#include "lock/successes.h"
#include "show/history.h"
#include "show/json.h"
#include "show/print.h"
#include "show/status.h"
#include "verbs/epoch.h"

namespace rlock::cli {
namespace {

using State = lock::Status::State;

struct Question {
  std::vector<lock::LockName> names;  // empty: all locks
  bool if_known = false;              // look up whether the names have ever been used
  milliseconds exchange{};
  bool epochs = false;     // ask for the epochs of the servers, too
  bool successes = false;  // and for what is remembered of jobs that run once, of named locks
};

// None for servers of a cluster, and for those that do not answer.
lock::Answers<std::optional<lock::Epoch>> epochs_of(lock::Servers& servers, milliseconds exchange) {
  const auto ask = [](redis::Client& client, const Until& end) -> Result<std::optional<lock::Epoch>> {
    if (client.address().slots) return std::nullopt;
    return lock::read_epoch(client, end);
  };
  return servers.ask_each<std::optional<lock::Epoch>>(ask, exchange, Until{}.at_most(exchange));
}

void add_epochs(std::vector<lock::Status>& all, lock::Servers& servers, milliseconds exchange) {
  const auto epochs = epochs_of(servers, exchange);
  for (lock::Status& status : all) {
    if (!servers.quorum()) status.epoch = epochs.front().value_or(std::nullopt);
    for (std::size_t i = 0; i < std::min(status.servers.size(), epochs.size()); ++i) {
      status.servers[i].epoch = epochs[i].value_or(std::nullopt);
    }
  }
}

// None if they cannot be read, because the state of the lock is worth more.
void add_successes(lock::Status& status, lock::Servers& servers, milliseconds exchange) {
  auto successes = lock::read_successes(servers, status.name(), exchange);
  if (successes) {
    status.successes = *std::move(successes);
  } else if (successes.error().code != Error::Code::denied) {
    log::notice(status.name().display() + ": it is unknown which jobs have succeeded: " + successes.error().message);
  }
}

// `also`: as in lock::inspect_all.
Result<lock::Listing> look(lock::Servers& servers, const Question& question,
                           const std::set<lock::LockName>& also = {}) {
  lock::Listing all;
  if (question.names.empty()) all = RLOCK_TRY(lock::inspect_all(servers, question.exchange, also));
  for (const lock::LockName& name : question.names) {
    const Until end = Until{}.at_most(question.exchange);
    lock::Status& status = all.locks.emplace_back(RLOCK_TRY(servers->inspect(name, end)));
    if (question.successes) add_successes(status, servers, question.exchange);
    if (question.if_known) status.known = lock::is_known(servers, status, end);
  }
  if (question.epochs) add_epochs(all.locks, servers, question.exchange);
  return all;
}

// Remarks for lists of locks: about servers of a quorum that have not answered, and about servers that grant no locks
// yet, because a list may be empty if they have lost their data.
std::vector<std::string> remarks_on(lock::Servers& servers, milliseconds exchange, bool held_back) {
  std::vector<std::string> remarks;
  for (std::size_t i = 0; servers.quorum() && i < servers.size(); ++i) {
    const std::string& why = servers.quorum()->member(i).silence;
    if (!why.empty()) remarks.push_back(why + "; the other servers of the quorum have answered");
  }
  if (!held_back) return remarks;
  const auto epochs = epochs_of(servers, exchange);
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    const auto epoch = epochs[i].value_or(std::nullopt);
    if (epoch && epoch->back) {
      remarks.push_back(escaped(servers.client(i).address().display()) + ": " + who_waits(*epoch->back));
    }
  }
  return remarks;
}

// "unknown who holds 2 locks: …"
std::string unknown_holders(std::size_t refused) {
  return "unknown who holds " + std::to_string(refused) + (refused == 1 ? " lock" : " locks") +
         ": this user has no right to read " + (refused == 1 ? "it" : "them");
}

// "12000 locks are left out, …, 11000 of them of ci:*"; "" if there are none.
std::string left_out_text(const lock::LeftOut& left_out) {
  if (left_out.number == 0) return "";
  constexpr std::size_t kShown = 3;
  std::vector<std::pair<std::string, std::size_t>> most(left_out.of_prefix.begin(), left_out.of_prefix.end());
  std::ranges::stable_sort(most, std::ranges::greater{}, &std::pair<std::string, std::size_t>::second);
  if (most.size() > kShown) most.resize(kShown);
  std::string text = std::to_string(left_out.number) + (left_out.number == 1 ? " lock is" : " locks are") +
                     " left out, because a list of locks may take no more than " +
                     std::to_string(lock::kLongestList >> 20) + " MiB; ask for them by their names";
  for (const auto& [prefix, number] : most) {
    text += (&prefix == &most.front().first ? ": " : ", ") + std::to_string(number) +
            (prefix.empty() ? " of others" : " of " + escaped(prefix, 80) + "*");
  }
  return text;
}

// How many past holds of each lock `status --html` shows: enough to see a change, and few enough for hundreds of locks.
inline constexpr std::size_t kHoldsOfEach = 100;

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
    query.fits = true;
    auto newest = RLOCK_TRY(lock::read_newest(servers, query, exchange));
    facts.holds = std::move(newest.holds);
    const bool all = facts.holds.size() >= query.limit;
    if (newest.older) {
      add_remark(facts.about_holds, all ? "the newest ones (use --limit for older ones)"
                                        : "the newest ones (a page has no more than 32 MiB of them)");
    }
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

// Those of the question, or all that are held or among `past`.
Result<void> add_locks(PageFacts& facts, lock::Servers& servers, const Question& question,
                       const std::set<lock::LockName>& past, bool may_be_refused) {
  auto found = look(servers, question, past);
  if (!found) {
    if (!may_be_refused || found.error().code != Error::Code::denied) return std::unexpected(std::move(found).error());
    facts.remarks.push_back("It is unknown who holds the locks now: " + found.error().message);
    return {};
  }
  facts.locks = std::move(found->locks);
  facts.refused = found->refused.size();
  if (facts.refused > 0) facts.remarks.push_back("It is " + unknown_holders(facts.refused));
  if (auto remark = left_out_text(found->left_out); !remark.empty()) facts.remarks.push_back(std::move(remark));
  return {};
}

// Writes the page of `status --html` and `history --html`, which is one because a reader asks both who holds a lock and
// what happened to it: the locks of the options, or if these name none, all that are held or have holds that the query
// wants. Errors: those of lock::read_history and look().
Result<int> write_page(lock::Servers& servers, const NamingOptions& options, const lock::HistoryQuery& query,
                       Zone zone) {
  // For `history`, which reads the newest holds of all locks together, these are enough if the user has no right to the
  // present state.
  const bool only_history = !query.of_each;
  PageFacts facts{.now = since_1970(), .zone = zone};
  RLOCK_TRY(add_holds(facts, servers, query, options.timeout));
  auto totals = lock::read_totals(servers, options.names, options.timeout);
  if (!totals && totals.error().code != Error::Code::denied) return std::unexpected(std::move(totals).error());
  if (totals) facts.totals = *std::move(totals);
  std::set<lock::LockName> past;
  for (const lock::PastHold& hold : facts.holds) past.insert(hold.name);
  // Jobs that did not get a lock have no holds.
  for (const auto& [name, unused] : facts.totals) {
    if (!only_history) past.insert(name);
  }
  RLOCK_TRY(add_locks(facts, servers, {.names = options.names, .exchange = options.timeout}, past, only_history));
  std::ranges::move(remarks_on(servers, options.timeout, true), std::back_inserter(facts.remarks));
  RLOCK_TRY(print_data(page_text(facts)));
  return kDone;
}

// Others have chosen the name, and it may be put on a command line.
bool is_safe_on_a_line(const std::string& name) { return !name.starts_with('-') && is_what_it_looks_like(name); }

// Like ls(1), prints unchanged names for programs, and escapes them on a terminal. No name contains a newline.
std::string names_of(const std::vector<lock::Status>& all, bool null) {
  const bool terminal = isatty(STDOUT_FILENO);
  std::string text;
  std::size_t left_out = 0;
  for (const lock::Status& status : all) {
    if (status.state != State::held) continue;
    const std::string& name = status.name().text();
    if (!terminal && !null && !is_safe_on_a_line(name)) {
      ++left_out;
      continue;
    }
    text += terminal ? inert(status.name().display()) : name;
    text += null ? '\0' : '\n';
  }
  if (left_out > 0) {
    log::warning(std::to_string(left_out) + (left_out == 1 ? " name is" : " names are") +
                 " left out, because of a leading - or what would have to be escaped; use --null to print all");
  }
  return text;
}

// Errors (wrong_kind): a name is in use for something else, so it is neither held nor free.
Result<int> are_held(const std::vector<lock::Status>& all) {
  for (const lock::Status& status : all) {
    if (status.state != State::other_kind) continue;
    return fail(Error::Code::wrong_kind, status.name().display() + ": not a lock, but " + status.other_kind.text());
  }
  return std::ranges::all_of(all, [](const auto& status) { return status.state == State::held; }) ? kDone : kFree;
}

Result<std::string> for_prometheus(lock::Servers& servers, const Question& question) {
  const auto& names = question.names;
  const milliseconds exchange = question.exchange;
  const auto last = RLOCK_TRY(lock::read_history(servers, {.names = names, .limit = 1, .of_each = true}, exchange));
  const auto totals = RLOCK_TRY(lock::read_totals(servers, names, exchange));
  std::set<lock::LockName> known;
  for (const lock::PastHold& hold : last) known.insert(hold.name);
  for (const auto& [name, unused] : totals) known.insert(name);
  std::set<lock::LockName> once;
  if (names.empty()) once = RLOCK_TRY(lock::names_with_successes(servers, exchange));
  known.insert(once.begin(), once.end());
  auto found = RLOCK_TRY(look(servers, question, known));
  if (const std::string remark = left_out_text(found.left_out); !remark.empty()) log::warning(remark);
  for (lock::Status& status : found.locks) {
    if (once.contains(status.name())) add_successes(status, servers, exchange);
  }
  std::map<std::string, ServerState> answer;
  const auto epochs = epochs_of(servers, exchange);
  for (std::size_t i = 0; i < servers.size(); ++i) {
    ServerState& server = answer[escaped(servers.client(i).address().display())];
    if (servers.quorum()) server.up = servers.quorum()->member(i).silence.empty();
    server.epoch = epochs[i].value_or(std::nullopt);
  }
  return prometheus_text(found.locks, last, totals, answer, found.left_out);
}

// The last success of that name, in what is remembered for --once and in the history (a quorum's newest thousand).
Result<lock::Successes> last_success(lock::Servers& servers, const lock::LockName& name, milliseconds exchange) {
  lock::Successes last = RLOCK_TRY(lock::read_successes(servers, name, exchange));
  const milliseconds until = last.now + lua::kAhead;
  const bool one = !servers.quorum();
  const lock::HistoryQuery query{
      .names = {name}, .limit = one ? std::size_t{1} : std::size_t{1000}, .until = until, .fine = one};
  for (const lock::PastHold& hold : RLOCK_TRY(lock::read_history(servers, query, exchange))) {
    if (!hold.fine() || hold.ended > until) continue;
    const bool newer = last.known.empty() || last.known.front().at < hold.ended;
    if (newer) last.known.insert(last.known.begin(), {.at = hold.ended, .who = hold.who});
    break;
  }
  return last;
}

// What has kept jobs from running: a holder, and how often one has not got the lock.
Result<std::string> what_is_in_the_way(lock::Servers& servers, const lock::LockName& name, milliseconds exchange) {
  const auto status = RLOCK_TRY(servers->inspect(name, Until{}.at_most(exchange), {}));
  const auto totals = RLOCK_TRY(lock::read_totals(servers, {name}, exchange));
  const auto counted = totals.find(name);
  const long long skips = counted == totals.end() ? 0 : counted->second.skips;
  return (status.state == State::held ? "; " + held_by(status) : "") +
         (skips == 0 ? "" : "; not acquired by " + std::to_string(skips) + (skips == 1 ? " job" : " jobs"));
}

Result<int> have_succeeded(lock::Servers& servers, const StatusOptions& options) {
  int result = kDone;
  std::string text;
  for (const lock::LockName& name : options.names) {
    const auto last = RLOCK_TRY(last_success(servers, name, options.timeout));
    const bool never = last.known.empty();
    const std::string who = never ? "" : success_text(last.known.front(), last.ago(last.known.front()));
    const bool in_time = !never && last.ago(last.known.front()) <= *options.succeeded_within;
    if (!in_time) result = kNothing;
    const std::string failed =
        in_time || last.failed.empty() ? "" : "; " + failure_text(last.failed.front(), last.ago(last.failed.front()));
    text += name.display() + ": " +
            (in_time ? "succeeded " + who
             : never ? "no success is known from the history or --once"
                     : "no success within " + format_duration(*options.succeeded_within) + "; the last was " + who) +
            failed + RLOCK_TRY(what_is_in_the_way(servers, name, options.timeout)) + "\n";
  }
  return print(text, result);
}

constexpr milliseconds kEvery = 1s;
constexpr const char* kClear = "\033[H\033[2J";

// The holders and waiters, without times, which always change, and without the order of the holders, by expiry.
std::string essence(const std::vector<lock::Status>& all) {
  std::string text;
  for (const lock::Status& status : all) {
    text += status.name().text() + "\n" + std::to_string(status.slots) + status.other_kind.what + "\n";
    std::set<std::string> holders;
    for (const lock::HolderView& one : status.holders) {
      holders.insert(one.owner + " " + std::to_string(one.holds) + (one.overdue > 0ms ? " overdue" : "") +
                     (one.who.ended ? " ended" : ""));
    }
    for (const std::string& one : holders) text += one + "\n";
    text += "\n";
    for (const lock::WaiterView& one : status.queue) text += one.who.host + " " + std::to_string(one.who.pid) + "\n";
    for (const std::string& id : status.fair_queue) text += id + "\n";
    text += std::to_string(status.listening) + "\n";
  }
  return text;
}

// As many lines as fit, above the one in which the cursor stays.
std::string top_of(std::string_view text, const Screen& screen) {
  const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n'));
  if (lines < screen.height) return std::string(text);
  const std::size_t shown = std::max<std::size_t>(screen.height, 3) - 2;
  std::size_t end = 0;
  for (std::size_t i = 0; i < shown; ++i) end = text.find('\n', end) + 1;
  return std::string(text.substr(0, end)) + fitted(std::to_string(lines - shown) + " more lines\n", screen);
}

constexpr const char* kNoHolds =
    "no holds are recorded here; rlock records those of jobs that run with --history, or RLOCK_HISTORY=true, when they "
    "end\n";

constexpr std::string_view kOlder = "for older holds, use --limit\n";

std::string_view none_found(const HistoryOptions& options) {
  return options.failed || options.since ? "no such holds are recorded here\n" : kNoHolds;
}

// The newest holds first, as a table.
Result<int> print_holds(lock::Servers& servers, const HistoryOptions& options, lock::HistoryQuery query) {
  const Zone zone = options.local || isatty(STDOUT_FILENO) ? Zone::local : Zone::utc;
  const Screen screen = Screen::of_output();
  HistoryTable table(screen, zone);
  const std::size_t limit = query.limit++;  // one more, to see whether there are older ones
  std::size_t found = 0;
  const auto add = [&](const lock::PastHold& hold) {
    return ++found > limit ? Result<void>() : print(table.add(hold));
  };
  RLOCK_TRY(lock::each_past_hold(servers, query, options.timeout, add));
  if (found > 0) RLOCK_TRY(print(table.end()));
  if (found > 0 && found <= limit) return kDone;
  return print(fitted(found > limit ? kOlder : none_found(options), screen), kDone);
}

// --report
Result<int> print_report(lock::Servers& servers, const HistoryOptions& options, const lock::HistoryQuery& query) {
  auto [holds, older] = RLOCK_TRY(lock::read_newest(servers, query, options.timeout));
  const auto reports = lock::report_on(std::move(holds));
  if (options.output == HistoryOptions::Output::json) return print(report_json(reports), kDone);
  const Screen screen = Screen::of_output();
  if (reports.empty()) return print(fitted(none_found(options), screen), kDone);
  return print(report_text(reports, screen) + (older ? fitted(kOlder, screen) : ""), kDone);
}

using Output = StatusOptions::Output;

bool for_people(const StatusOptions& options) { return options.output == Output::people; }
bool for_one(const StatusOptions& options) { return options.names.size() == 1; }

Question question_of(const StatusOptions& options) {
  const bool json = options.output == Output::json, alone = for_people(options) && for_one(options);
  return {.names = options.names,
          .if_known = for_people(options) || json,
          .exchange = options.timeout,
          .epochs = json || alone || (for_people(options) && options.watch),
          .successes = json || alone || options.output == Output::prometheus};
}

std::string text_of(const std::vector<lock::Status>& all, const StatusOptions& options) {
  const Screen screen = Screen::of_output();
  if (options.output == Output::json) return status_json(all, options.watch);
  if (options.output == Output::names) return names_of(all, options.null);
  if (for_one(options)) return status_in_full(all.front(), screen, options.verbose);
  return all.empty() ? fitted(kNoLocks, screen) : status_table(all, screen);
}

// status --watch: asks again every second, until a signal ends it, or the reader is gone. For people on a terminal, it
// draws the text in place; otherwise it prints the answer whenever more than a time has changed. Keeps trying while a
// server is unreachable. Errors: those of look(), but `unavailable` only before the first success.
Result<int> watch(lock::Servers& servers, const StatusOptions& options, const Question& question) {
  const bool people = for_people(options), terminal = people && isatty(STDOUT_FILENO);
  std::string last = "\n", left_out;
  bool reached = false;
  do {
    if (terminal && in_background(STDOUT_FILENO)) continue;
    const auto all = look(servers, question);
    if (!all && (!reached || all.error().code != Error::Code::unavailable)) return std::unexpected(all.error());
    reached = true;
    const bool was_whole = std::exchange(left_out, all ? left_out_text(all->left_out) : "").empty();
    if (!people && was_whole && !left_out.empty()) log::warning(left_out);
    const std::string away = all ? "" : all.error().message + "; trying again";
    const std::string now = all ? essence(all->locks) : away;
    if (!terminal && std::exchange(last, now) == now) continue;
    if (!all && !terminal) {
      log::warning(away);
      continue;
    }
    const Screen screen = Screen::of_output();
    std::string text = all ? text_of(all->locks, options) : "";
    const std::string& below = all ? left_out : away;
    if (people && !below.empty()) text += fitted(below + "\n", screen);
    RLOCK_TRY(terminal ? print(kClear + top_of(text, screen)) : people ? print(text) : print_data(text));
  } while (wait_for(STDOUT_FILENO, 0, Until{}.at_most(kEvery)) != WaitEnd::ready);  // else nobody reads any longer
  return kDone;
}

Result<int> print_locks(lock::Servers& servers, const StatusOptions& options, const Question& question) {
  const bool people = for_people(options);
  const auto found = RLOCK_TRY(look(servers, question));
  if (options.output == Output::is_held) return are_held(found.locks);
  const std::string text = text_of(found.locks, options);
  RLOCK_TRY(people ? print(text) : print_data(text));
  if (for_one(options)) return kDone;  // it is shown with each server
  if (const std::string remark = left_out_text(found.left_out); !remark.empty()) log::warning(remark);
  if (people && found.locks.empty() && !found.refused.empty())
    log::warning("it is " + unknown_holders(found.refused.size()));
  for (const std::string& remark : remarks_on(servers, options.timeout, people)) log::notice(remark);
  return kDone;
}

}  // namespace

Result<int> execute(StatusOptions& options) {
  const Question question = question_of(options);
  lock::Servers servers = RLOCK_TRY(client_for(options));
  if (options.succeeded_within) return have_succeeded(servers, options);
  if (options.watch) return watch(servers, options, question);
  switch (options.output) {
    case Output::prometheus: return print(RLOCK_TRY(for_prometheus(servers, question)), kDone);
    case Output::html:
      return write_page(servers, options, {.names = options.names, .limit = kHoldsOfEach, .of_each = true}, Zone::utc);
    default: return print_locks(servers, options, question);
  }
}

Result<int> execute(HistoryOptions& options) {
  lock::HistoryQuery query{.names = options.names,
                           .limit = static_cast<std::size_t>(*options.limit),
                           .failed = options.failed,
                           .fits = options.report};
  if (options.since) (options.since->before_now ? query.within : query.since) = options.since->time;
  lock::Servers servers = RLOCK_TRY(client_for(options));
  if (options.report) return print_report(servers, options, query);
  switch (options.output) {
    case HistoryOptions::Output::json: {
      HoldsAsJson holds;
      const auto add = [&](const lock::PastHold& hold) { return print(holds.add(hold)); };
      RLOCK_TRY(lock::each_past_hold(servers, query, options.timeout, add));
      return print(holds.end(), kDone);
    }
    case HistoryOptions::Output::html:
      return write_page(servers, options, query, options.local ? Zone::local : Zone::utc);
    default: return print_holds(servers, options, query);
  }
}

}  // namespace rlock::cli
