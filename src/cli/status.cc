// SPDX-License-Identifier: MIT
// rlock status: shows who holds which locks.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/look.h"
#include "cli/near_names.h"
#include "cli/page.h"
#include "cli/server.h"
#include "lock/listing.h"
#include "lock/read_history.h"
#include "lock/servers.h"
#include "lock/successes.h"
#include "show/json.h"
#include "show/print.h"
#include "show/status.h"

namespace rlock::cli {
namespace {

using State = lock::Status::State;

// True if it is safe to put the name, which others have chosen, on a command line.
bool fits_a_line(const std::string& name) { return !name.starts_with('-') && is_what_it_looks_like(name); }

void warn_of_left_out(std::size_t names) {
  if (names == 0) return;
  log::warning(std::to_string(names) + (names == 1 ? " name is" : " names are") +
               " left out, because of a leading - or what would have to be escaped; use --null to print all");
}

// Like ls(1), prints unchanged names for programs, and escapes them on a terminal. No name contains a newline.
std::string names_of(const std::vector<lock::Status>& all, bool null) {
  const bool terminal = isatty(STDOUT_FILENO);
  std::string text;
  std::size_t left_out = 0;
  for (const lock::Status& status : all) {
    if (status.state != State::held) continue;
    const std::string& name = status.name().text();
    if (!terminal && !null && !fits_a_line(name)) {
      ++left_out;
      continue;
    }
    text += terminal ? status.name().display() : name;
    text += null ? '\0' : '\n';
  }
  warn_of_left_out(left_out);
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
  auto states = RLOCK_TRY(look(servers, question, -1, known));
  for (lock::Status& status : states) {
    if (once.contains(status.name())) add_successes(status, servers, exchange);
  }
  std::map<std::string, ServerState> answer;
  const auto epochs = epochs_of(servers, exchange, Until{});
  for (std::size_t i = 0; i < servers.size(); ++i) {
    ServerState& server = answer[escaped(servers.client(i).address().display())];
    if (servers.quorum()) server.up = servers.quorum()->member(i).silence.empty();
    server.epoch = epochs[i].value_or(std::nullopt);
  }
  return prometheus_text(states, last, totals, answer);
}

// The newest hold that did not fail, and ended no later than `until`. Of a quorum, among the newest thousand.
Result<std::optional<lock::PastHold>> newest_fine_hold(lock::Servers& servers, const lock::LockName& name,
                                                       milliseconds until, milliseconds exchange) {
  const bool one = !servers.quorum();
  const lock::HistoryQuery query{
      .names = {name}, .limit = one ? std::size_t{1} : std::size_t{1000}, .until = until, .fine = one};
  for (lock::PastHold& hold : RLOCK_TRY(lock::read_history(servers, query, exchange))) {
    if (hold.fine() && hold.ended <= until) return std::move(hold);
  }
  return std::nullopt;
}

// The last success of a job of that name, from what is remembered for --once, and from the history. A user who may not
// read the former, such as one with the rights for rlock 1.0, only needs a history with a success in that time.
Result<lock::Successes> last_success(lock::Servers& servers, const lock::LockName& name, milliseconds in_time,
                                     milliseconds exchange) {
  auto remembered = lock::read_successes(servers, name, exchange);
  const bool denied = !remembered && remembered.error().code == Error::Code::denied;
  if (!remembered && !denied) return remembered;
  lock::Successes last;
  if (denied) last.now = RLOCK_TRY(lock::time_of(servers, exchange, Until{}.at_most(exchange)));
  if (!denied) last = *remembered;
  const auto hold = RLOCK_TRY(newest_fine_hold(servers, name, last.now + lock::kAhead, exchange));
  if (hold && (last.known.empty() || last.known.front().at < hold->ended)) {
    last.known.insert(last.known.begin(), {.at = hold->ended, .who = hold->who});
  }
  if (denied && (last.known.empty() || last.ago(last.known.front()) > in_time)) return remembered;
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
    const auto last = RLOCK_TRY(last_success(servers, name, options.succeeded_within, options.timeout));
    const bool never = last.known.empty();
    const std::string who = never ? "" : success_text(last.known.front(), last.ago(last.known.front()));
    const bool in_time = !never && last.ago(last.known.front()) <= options.succeeded_within;
    if (!in_time) result = kNothing;
    text += name.display() + ": " +
            (in_time ? "succeeded " + who
             : never ? "no success is known, in the history or of --once"
                     : "no success within " + format_duration(options.succeeded_within) + "; the last was " + who) +
            RLOCK_TRY(what_is_in_the_way(servers, name, options.timeout)) + "\n";
  }
  return print(text, result);
}

}  // namespace

// Its branches are the output formats.
Result<int> execute(StatusOptions& options) {
  using enum StatusOptions::Output;
  const bool for_people = options.output == people, one = options.names.size() == 1;
  const Question question{.names = options.names,
                          .strings = options.like != nullptr,
                          .if_known = for_people || options.output == json,
                          .exchange = options.timeout,
                          .epochs = options.output == json || (for_people && (one || options.watch)),
                          .deadlocks = options.output != names && options.output != is_held,
                          .successes = options.output == json || options.output == prometheus || (for_people && one)};
  const auto shown = [&](const std::vector<lock::Status>& all, const std::string& near = "") -> std::string {
    const Screen screen = Screen::of_output();
    if (options.output == json) return status_json(all, options.watch);
    if (options.output == names) return names_of(all, options.null);
    if (one) return status_in_full(all.front(), screen, near, options.verbose);
    return all.empty() ? fitted(kNoLocks, screen) : status_table(all, screen);
  };
  lock::Servers servers = RLOCK_TRY(client_for(options));
  if (options.watch) {
    return watch({.look = [&](int interrupt) { return look(servers, question, interrupt); },
                  .shown = shown,
                  .for_people = for_people,
                  .names = options.names.size()});
  }
  if (options.output == prometheus) return print(RLOCK_TRY(for_prometheus(servers, question)), kDone);
  if (options.output == success) return have_succeeded(servers, options);
  if (options.output == html) {
    const lock::HistoryQuery query{.names = options.names, .limit = kHoldsOfEach, .of_each = true};
    return write_page(servers, question, query, {.file = options.html});
  }
  std::size_t refused = 0;
  const auto all = RLOCK_TRY(look(servers, question, -1, {}, &refused));
  if (options.output == is_held) return are_held(all);
  const bool mistyped = for_people && one && !all.front().known;
  RLOCK_TRY(print(shown(all, mistyped ? near_name(servers, options.names.front(), options.timeout) : "")));
  if (one) return kDone;  // it is shown with each server
  for (const std::string& remark : silent_servers(servers)) log::notice(remark);
  if (!for_people) return kDone;
  if (all.empty() && refused > 0) log::warning("it is " + unknown_holders(refused));
  for (const std::string& remark : held_back(servers, options.timeout)) log::notice(remark);
  return kDone;
}

}  // namespace rlock::cli
