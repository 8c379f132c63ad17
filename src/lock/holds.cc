// SPDX-License-Identifier: MIT
#include "lock/holds.h"

#include "base/log.h"

namespace rlock::lock {

bool lasted(const Hold& hold, const Released& released, TimePoint ends_at, TimePoint answered) {
  switch (released.outcome) {
    case ReleaseOutcome::released:
    case ReleaseOutcome::kept: return true;
    case ReleaseOutcome::free: return answered >= ends_at && !hold.token.empty() && released.token == hold.token;
    case ReleaseOutcome::other_owner:
    case ReleaseOutcome::other_kind:
    case ReleaseOutcome::changed: break;
  }
  return false;
}

void warn_of_trouble(const std::string& which, const Released& released) {
  if (!released.unwritten.empty())
    log::warning(which + "the history could not be written: " + escaped(released.unwritten, 200));
  if (!released.fault.empty()) log::warning(which + "waiters could not be told: " + escaped(released.fault, 200));
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
