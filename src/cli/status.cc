// SPDX-License-Identifier: MIT
// rlock status: who holds which locks.
#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/output_json.h"
#include "cli/output_people.h"
#include "cli/print.h"
#include "cli/server.h"
#include "lock/quorum.h"

namespace rlock::cli {
namespace {

using State = lock::Status::State;

Result<std::vector<lock::Status>> look(lock::Servers& client, const StatusOptions& options) {
  if (options.names.empty()) return lock::inspect_all(client, options.timeout);
  std::vector<lock::Status> all;
  for (const lock::LockName& name : options.names) {
    const Until end = Until{}.at_most(options.timeout);
    all.push_back(RLOCK_TRY(options.like ? lock::inspect_string(client, name, end) : lock::inspect(client, name, end)));
  }
  return all;
}

std::string in_words(const std::vector<lock::Status>& all, bool listing) {
  const Screen screen = Screen::of_output();
  if (listing && all.empty()) return fitted("no locks are held through rlock\n", screen);
  return !listing && all.size() == 1 ? status_in_full(all.front(), screen) : status_table(all, screen);
}

// Byte for byte for programs, as ls(1) does it; no name holds a newline. On a terminal what others have put into the
// name of a lock must not act.
std::string names_of(const std::vector<lock::Status>& all) {
  const bool terminal = isatty(STDOUT_FILENO);
  std::string text;
  for (const lock::Status& status : all) {
    if (status.state == State::held) text += (terminal ? status.name().display() : status.name().text()) + "\n";
  }
  return text;
}

std::string shown(const std::vector<lock::Status>& all, const StatusOptions& options) {
  switch (options.output) {
    case StatusOptions::Output::people: return in_words(all, options.names.empty());
    case StatusOptions::Output::json: return status_json(all, options.watch);
    case StatusOptions::Output::names: return names_of(all);
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

// The holders and waiters, without the times, which always change.
std::string essence(const std::vector<lock::Status>& all) {
  std::string text;
  for (const lock::Status& status : all) {
    text += status.name().text() + "\n" + std::to_string(status.slots) + status.other_kind.what + "\n";
    for (const lock::HolderView& one : status.holders) text += one.owner + " " + std::to_string(one.holds) + "\n";
    text += "\n";
    for (const lock::WaiterView& one : status.queue) text += one.who.host + " " + std::to_string(one.who.pid) + "\n";
  }
  return text;
}

// Shows what was found, or that the server is away.
Result<void> show(const Result<std::vector<lock::Status>>& all, const StatusOptions& options, bool on_terminal) {
  const std::string clear = on_terminal ? "\033[H\033[2J" : "";
  if (all) return print(clear + shown(*all, options));
  const std::string away = all.error().message + "; looking again";
  if (on_terminal) return print(clear + away + "\n");
  log::warning(away);
  return {};
}

// On a terminal the picture is drawn anew each second; elsewhere it is written down when it has changed. Until a signal
// ends it, or nobody reads it any more. A server that is away for a while is waited for.
Result<int> watch(lock::Servers& client, const StatusOptions& options) {
  const bool on_terminal = isatty(STDOUT_FILENO) && options.output == StatusOptions::Output::people;
  std::string last = "\n";
  const auto nobody_reads = [] { return wait_for(STDOUT_FILENO, 0, Until{}.at_most(1s)) == WaitEnd::ready; };
  for (bool reached = false; !reached || !nobody_reads();) {
    const auto all = look(client, options);
    if (!all && (!reached || all.error().code != Error::Code::unavailable)) return std::unexpected(all.error());
    reached = true;
    const std::string now = all ? essence(*all) : all.error().message;
    if (now == last && !on_terminal) continue;
    last = now;
    RLOCK_TRY(show(all, options, on_terminal));
  }
  return kDone;
}

}  // namespace

Result<int> execute(const StatusOptions& options) {
  lock::Servers client = RLOCK_TRY(client_for(options));
  if (options.watch) return watch(client, options);
  const auto all = RLOCK_TRY(look(client, options));
  if (options.output == StatusOptions::Output::is_held) return is_held(all);
  RLOCK_TRY(print(shown(all, options)));
  return kDone;
}

}  // namespace rlock::cli
