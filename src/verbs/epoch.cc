// SPDX-License-Identifier: MIT
#include "verbs/epoch.h"

namespace rlock::lock {

using redis::Address;

bool outlives_restarts(const Address& address) { return address.server.kind == redis::Endpoint::Kind::local; }

milliseconds lag_of(const Address& address) {
  return address.kind == Address::Kind::sentinel ? kReplacedMasterGrants : 0ms;
}

Guard guard_of(const Address& address, std::optional<bool> wanted) {
  const bool needs = outlives_restarts(address) || address.kind == Address::Kind::sentinel;
  if (address.kind == Address::Kind::cluster || !wanted.value_or(needs)) return Guard::off;
  return outlives_restarts(address) ? Guard::data : Guard::life;
}

GuardRequest guard_request(const redis::Client& client, Guard guard) {
  return {.guard = guard, .lag = lag_of(client.address())};
}

GuardRequest newcomer_guard(redis::Client& client, Guard guard, const Until& until) {
  GuardRequest asked = guard_request(client, guard);
  if (guard != Guard::life) return asked;
  if (const auto reign = client.reign(until)) {
    const auto age = std::chrono::duration_cast<milliseconds>(BootClock::now() - reign->since);
    asked.age = std::max(age, 0ms);
    asked.life = reign->replication_id;
  }
  return asked;
}

}  // namespace rlock::lock
