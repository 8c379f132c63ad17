// SPDX-License-Identifier: MIT
// Evaluates facts about a server that cli/doctor.cc has collected.
#pragma once

#include "redis/server_info.h"
#include "redis/tls.h"
#include "verbs/epoch.h"

namespace rlock::cli {

enum class Verdict { ok, warn, fail };

constexpr std::string_view word(Verdict verdict) {
  return verdict == Verdict::ok ? "ok" : verdict == Verdict::warn ? "warn" : "fail";
}

struct Check {
  Verdict verdict = Verdict::ok;
  std::string_view name;
  std::string seen;    // escaped
  std::string advice;  // what to do; empty if all is well
};

// The server's set-up. Members without a value are unknown.
struct ServerFacts {
  std::optional<redis::ServerInfo> info;
  std::optional<std::string> appendfsync, replicas_to_write, replicas_max_lag;
  std::optional<bool> default_may_load;  // as redis::default_user_may_load()
  bool behind_sentinels = false;         // Sentinels may replace this server by a replica
  bool private_server = false;           // it was started by rlock for jobs on this host
};

// Checks version, role, persistence, eviction and replicas, in this order.
std::vector<Check> check_set_up(const ServerFacts& facts);

// `epoch`: what read_epoch() found. `guarded`: jobs that take locks there use the epoch guard by default.
Check check_epoch(const Result<std::optional<lock::Epoch>>& epoch, bool guarded);

// The same for a server that does not say which life of its data it is in.
Check check_lives(bool guarded);

// REQUIRES: at least one reading.
Check check_round_trip(std::span<const redis::ClockReading> readings);

// Checks whether the server's clock can be read, how far it is from ours, and whether it has stepped between readings.
// REQUIRES: at least one reading.
Check check_clock(std::span<const redis::ClockReading> readings);

// `without`: how many of a cluster's 16384 hash slots have no server.
Check check_slots(int servers, int without);
// `life`: that of a verified chain.
Check check_certificate(const redis::CertificateLife& life);
// `standing`: what the Sentinels say about the server.
Check check_sentinels(const Result<redis::Client::Standing>& standing);

}  // namespace rlock::cli
