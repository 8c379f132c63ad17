// SPDX-License-Identifier: MIT
// rlock status: who holds which locks.
#include <algorithm>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/server.h"
#include "lock/verbs.h"

namespace rlock::cli {
namespace {

using State = lock::Status::State;

Result<std::vector<lock::Status>> look(redis::Client& client, const StatusOptions& options) {
  if (options.names.empty()) return lock::inspect_all(client, options.common.timeout);
  std::vector<lock::Status> all;
  for (const lock::LockName& name : options.names) {
    all.push_back(RLOCK_TRY(lock::inspect(client, name, Until{}.at_most(options.common.timeout))));
  }
  return all;
}

std::string in_words(const std::vector<lock::Status>& all, bool listing) {
  if (listing && all.empty()) return "no locks are held through rlock\n";
  return !listing && all.size() == 1 ? status_in_full(all.front()) : status_table(all);
}

std::string names_of(const std::vector<lock::Status>& all) {
  std::string text;
  for (const lock::Status& status : all) {
    if (status.state == State::held) text += status.name.text() + "\n";
  }
  return text;
}

}  // namespace

Result<int> execute(const StatusOptions& options) {
  redis::Client client = RLOCK_TRY(client_for(options.common));
  const auto all = RLOCK_TRY(look(client, options));
  switch (options.output) {
    case StatusOptions::Output::people: RLOCK_TRY(print(in_words(all, options.names.empty()))); break;
    case StatusOptions::Output::json: RLOCK_TRY(print(status_json(all))); break;
    case StatusOptions::Output::names: RLOCK_TRY(print(names_of(all))); break;
    case StatusOptions::Output::is_held:
      return std::ranges::all_of(all, [](const auto& status) { return status.state == State::held; }) ? kDone : kFree;
  }
  return kDone;
}

}  // namespace rlock::cli
