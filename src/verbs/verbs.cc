// SPDX-License-Identifier: MIT
#include "verbs/verbs.h"

#include <algorithm>

#include "base/text.h"

namespace rlock::lock {

std::string display(std::span<const Hold> holds) {
  std::string text;
  for (const Hold& hold : holds) text += (text.empty() ? "" : ", ") + hold.name().display();
  return text;
}

TimePoint oldest(std::span<const Hold> holds) { return std::ranges::min(holds, {}, &Hold::sent).sent; }

Result<AllRenewed> Verbs::renew(std::span<const Hold> holds, milliseconds lease, const Until& until) {
  const TimePoint sent = BootClock::now();
  auto renewed = renew_all(holds, lease, sent, until);
  if (renewed) renewed->sent = sent;
  return renewed;
}

Result<AllRenewed> all_of(std::span<const Result<Renewed>> each) {
  for (std::size_t i = 0; i < each.size(); ++i) {
    if (each[i] && each[i]->outcome != RenewOutcome::renewed) return AllRenewed{*each[i], i};
  }
  AllRenewed all{{RenewOutcome::renewed, milliseconds::max(), {}}};
  for (const auto& one : each) all.found = std::min(all.found, RLOCK_TRY(one).found);
  return all;
}

bool lasted(const Hold& hold, const Released& released, TimePoint ends_at, TimePoint answered) {
  switch (released.outcome) {
    case ReleaseOutcome::released:
    case ReleaseOutcome::kept: return true;
    case ReleaseOutcome::free: return answered >= ends_at && !hold.token.empty() && released.token == hold.token;
    case ReleaseOutcome::other_owner:
    case ReleaseOutcome::other_kind: break;
  }
  return false;
}

std::optional<Asked> asked_to_stop(const redis::Message& message, std::span<const Hold> holds) {
  const auto end = message.text.find('\n');
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (message.channel != holds[i].name().control_channel()) continue;
    if (message.text.substr(0, end) != holds[i].owner.text()) continue;
    return Asked{i, end == std::string::npos ? "someone" : escaped(message.text.substr(end + 1), 200)};
  }
  return {};
}

}  // namespace rlock::lock
