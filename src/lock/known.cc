// SPDX-License-Identifier: MIT
#include "lock/known.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "lock/listing.h"

namespace rlock::lock {
namespace {

// A user may lack the right to some of them.
bool has_keys(redis::Client& client, const LockName& name, const Until& until) {
  const std::string keys[] = {name.text(),      name.token_key(),   name.holder_key(), name.queue_key(),
                              name.waiters_key(), name.history_key(), name.totals_key(), name.due_key()};
  redis::Words command = {"EXISTS"};
  for (const std::string& key : keys) command.push_back(key);
  const auto reply = client.insist(command, until);
  return !reply || reply->as_number() != 0;
}

}  // namespace

bool is_known(Servers& servers, const Status& status, const Until& until) {
  const bool shows = status.state != Status::State::free || !status.token.empty() || status.waiting > 0 ||
                     !status.fair_queue.empty() || status.listening > 0;
  if (shows) return true;
  if (!servers.is_quorum()) return has_keys(servers.only(), status.name(), until);
  const auto answers = servers.ask_each<bool>(
      [&](std::size_t, Member& member, const Until& end) -> Result<bool> {
        return has_keys(member.client, status.name(), end);
      },
      kLookLimit, until, [](const auto&, const auto&) { return false; });
  return std::ranges::any_of(answers, [](const auto& answer) { return answer.value_or(true); });
}

Result<std::set<LockName>> known_names(Servers& servers, milliseconds exchange, const Until& end) {
  constexpr std::string_view kWords[] = {LockName::kHolder, LockName::kQueue, LockName::kHistory, LockName::kTotals,
                                         LockName::kToken};
  return names_with(servers.member(0).client, kWords, 0, exchange, end);
}

}  // namespace rlock::lock
