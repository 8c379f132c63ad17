// SPDX-License-Identifier: MIT
// rlock status: who holds which locks.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/near_names.h"
#include "show/json.h"
#include "show/status.h"
#include "show/print.h"
#include "cli/server.h"
#include "show/watch.h"
#include "lock/listing.h"
#include "lock/servers.h"
#include "lock/read_history.h"

namespace rlock::cli {
namespace {

using State = lock::Status::State;

bool says_what_is_known(const StatusOptions& options) {
  return options.output == StatusOptions::Output::people || options.output == StatusOptions::Output::json;
}

// `interrupt`: as in Until. `also`: as in lock::inspect_all.
Result<std::vector<lock::Status>> look(lock::Servers& client, const StatusOptions& options, int interrupt,
                                       const std::set<lock::LockName>& also = {}) {
  const Until until{TimePoint::max(), interrupt};
  if (options.names.empty()) return lock::inspect_all(client, options.timeout, until, also);
  std::vector<lock::Status> all;
  for (const lock::LockName& name : options.names) {
    const Until end = until.at_most(options.timeout);
    all.push_back(RLOCK_TRY(client->inspect(name, end, {.as_string = options.like != nullptr})));
    if (says_what_is_known(options)) all.back().known = lock::is_known(client, all.back(), end);
  }
  return all;
}

std::string in_words(const std::vector<lock::Status>& all, bool listing) {
  const Screen screen = Screen::of_output();
  if (listing && all.empty()) return fitted(kNoLocks, screen);
  return !listing && all.size() == 1 ? status_in_full(all.front(), screen) : status_table(all, screen);
}

// A script or a Tab puts it on a command line, and somebody reads it there: others have chosen it.
bool fits_a_line(const std::string& name) { return !name.starts_with('-') && is_what_it_looks_like(name); }

void warn_of_left_out(std::size_t names) {
  if (names == 0) return;
  log::warning(std::to_string(names) + (names == 1 ? " name is" : " names are") +
               " left out: with a - in front, or with characters that cannot be printed or seen; --null prints all");
}

// Byte for byte for programs, as ls(1) does it; no name holds a newline. On a terminal what others have put into the
// name of a lock must not act.
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

std::string shown(const std::vector<lock::Status>& all, const StatusOptions& options) {
  switch (options.output) {
    case StatusOptions::Output::people: return in_words(all, options.names.empty());
    case StatusOptions::Output::json: return status_json(all, options.watch);
    case StatusOptions::Output::names: return names_of(all, options.null);
    case StatusOptions::Output::prometheus:
    case StatusOptions::Output::is_held: break;
  }
  return "";
}

// A name that is in use for something else is neither held nor free.
Result<int> is_held(const std::vector<lock::Status>& all) {
  for (const lock::Status& status : all) {
    if (status.state != State::other_kind) continue;
    return fail(Error::Code::wrong_kind, status.name().display() + ": not a lock, but " + status.other_kind.text());
  }
  return std::ranges::all_of(all, [](const auto& status) { return status.state == State::held; }) ? kDone : kFree;
}

Result<std::string> for_prometheus(lock::Servers& client, const StatusOptions& options) {
  const auto last = RLOCK_TRY(
      lock::read_history(client, {.names = options.names, .limit = 1, .of_each = true}, options.timeout));
  const auto totals = RLOCK_TRY(lock::read_totals(client, options.names, options.timeout));
  std::set<lock::LockName> known;
  for (const lock::PastHold& hold : last) known.insert(hold.name);
  for (const auto& [name, unused] : totals) known.insert(name);
  const auto states = RLOCK_TRY(look(client, options, -1, known));
  std::map<std::string, bool> servers;
  for (std::size_t i = 0; client.quorum() && i < client.size(); ++i) {
    const lock::Member& member = client.quorum()->member(i);
    servers[member.address] = member.silence.empty();
  }
  return prometheus_text(states, last, totals, servers);
}

// Below the locks that the other servers of a quorum keep; one lock in full shows each server.
void say_what_is_missing(const lock::Servers& client) {
  for (std::size_t i = 0; client.quorum() && i < client.size(); ++i) {
    const std::string& why = client.quorum()->member(i).silence;
    if (!why.empty()) log::notice(why + "; the other servers of the quorum have answered");
  }
}

}  // namespace

Result<int> execute(StatusOptions& options) {
  lock::Servers client = RLOCK_TRY(client_for(options));
  if (options.watch) {
    return watch({.look = [&](int interrupt) { return look(client, options, interrupt); },
                  .shown = [&](const auto& all) { return shown(all, options); },
                  .for_people = options.output == StatusOptions::Output::people,
                  .names = options.names.size()});
  }
  if (options.output == StatusOptions::Output::prometheus) {
    RLOCK_TRY(print(RLOCK_TRY(for_prometheus(client, options))));
    return kDone;
  }
  const auto all = RLOCK_TRY(look(client, options, -1));
  const bool in_full = options.output == StatusOptions::Output::people && options.names.size() == 1;
  if (in_full && !all.front().known) {
    const std::string near = near_name(client, options.names.front(), options.timeout);
    RLOCK_TRY(print(status_in_full(all.front(), Screen::of_output(), near)));
    return kDone;
  }
  if (options.output == StatusOptions::Output::is_held) return is_held(all);
  RLOCK_TRY(print(shown(all, options)));
  if (options.names.size() != 1) say_what_is_missing(client);
  return kDone;
}

}  // namespace rlock::cli
