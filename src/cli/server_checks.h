// SPDX-License-Identifier: MIT
// The meaning of facts about a server for locks. Pure judgement: cli/doctor.cc has asked.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "redis/server_info.h"
#include "redis/tls.h"

namespace rlock::cli {

enum class Verdict { ok, warn, fail };

constexpr std::string_view word(Verdict verdict) {
  return verdict == Verdict::ok ? "ok" : verdict == Verdict::warn ? "warn" : "fail";
}

struct Check {
  Verdict verdict = Verdict::ok;
  std::string_view name;
  std::string seen;    // escaped
  std::string advice;  // what to do; empty where all is well
};

// The server's set-up. None: the server has not said it.
struct ServerFacts {
  std::optional<redis::ServerInfo> info;
  std::optional<std::string> appendfsync, replicas_to_write, replicas_max_lag;
  std::optional<bool> default_may_load;  // as redis::default_user_may_load()
  bool behind_sentinels = false;         // which make a replica the master when they do not hear of this one
};

// Its version, role, persistence, eviction and replicas, in this order.
std::vector<Check> check_set_up(const ServerFacts& facts);

// The time of an exchange. REQUIRES: at least one reading.
Check check_round_trip(std::span<const redis::ClockReading> readings);

// Whether the server's clock is read, how far it is from ours, and whether it has stepped from one reading to another.
// REQUIRES: at least one reading.
Check check_clock(std::span<const redis::ClockReading> readings);

// Each of the 16384 hash slots of a cluster has a server; `without`: that many have none.
Check check_slots(int servers, int without);
// `life`: of a chain that was verified.
Check check_certificate(const redis::CertificateLife& life);

}  // namespace rlock::cli
