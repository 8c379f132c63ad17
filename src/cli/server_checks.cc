// SPDX-License-Identifier: MIT
#include "cli/server_checks.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "verbs/lease.h"

namespace rlock::cli {
namespace {

using redis::ClockReading;
using redis::ServerInfo;
using std::chrono::microseconds;

constexpr int kNearlyFull = 90;                  // percent of the memory
constexpr milliseconds kLongestStep = 10ms;      // of a clock that runs evenly
constexpr std::chrono::days kRenewalTime{14};    // of a certificate
constexpr std::pair<int, int> kOldest = {6, 2};  // the oldest Redis that rlock is tested with

// Safe to show.
std::string shown(const ServerInfo& info, std::string_view field) { return escaped(info.text(field), 60); }

// Without the name of the check, which check_set_up() adds.
Check fine(std::string seen) { return {Verdict::ok, "", std::move(seen), ""}; }
Check warning(std::string seen, std::string advice) { return {Verdict::warn, "", std::move(seen), std::move(advice)}; }
Check failure(std::string seen, std::string advice) { return {Verdict::fail, "", std::move(seen), std::move(advice)}; }
Check unknown() {
  return warning("unknown, because INFO does not say it", "run rlock doctor as a user with the right to use INFO");
}

std::pair<int, int> version_of(const std::string& text) {
  std::pair<int, int> version{0, 0};
  const char* const end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, version.first);
  if (major.ptr < end) std::from_chars(major.ptr + 1, end, version.second);
  return version;
}

Check check_version(const ServerInfo& info, const ServerFacts&) {
  const std::string untested = "rlock is tested with Redis 6.2 to 8, Valkey 8 and 9, and Redict 7: use one of them";
  // Each of these also reports a version of Redis.
  constexpr struct {
    std::string_view name, has, version;
    bool tested;
  } relatives[] = {{"Valkey", "valkey_version", "valkey_version", true},
                   {"Redict", "redict_version", "redict_version", true},
                   {"Dragonfly", "dragonfly_version", "dragonfly_version", false},
                   {"Kvrocks", "kvrocks_version", "kvrocks_version", false},
                   {"Garnet", "garnet_version", "garnet_version", false},
                   {"KeyDB", "mvcc_depth", "redis_version", false}};
  for (const auto& one : relatives) {
    if (!info.has(one.has)) continue;
    const std::string server = std::string(one.name) + " " + shown(info, one.version);
    return one.tested ? fine(server) : warning(server, untested);
  }
  const std::string redis = "Redis " + shown(info, "redis_version");
  return version_of(info.text("redis_version")) < kOldest ? warning(redis, untested) : fine(redis);
}

Check check_role(const ServerInfo& info, const ServerFacts&) {
  if (info.text("role") == "master") return fine("master");
  if (info.text("role") == "active-replica") {  // KeyDB
    return failure("an active replica, which grants locks that others grant, too",
                   "take locks on a server without active-replica and multi-master");
  }
  if (info.text("role") != "slave") return unknown();
  return failure("a replica of " + shown(info, "master_host") + ":" + shown(info, "master_port"),
                 "a replica is read-only: use the address of the master");
}

Check check_persistence(const ServerInfo& info, const ServerFacts& facts) {
  const auto enabled = info.number("aof_enabled");
  if (!enabled) return unknown();
  if (*enabled == 0) {
    return warning("no append-only file",
                   "a restart loses locks, all or those granted since the last snapshot: set appendonly yes");
  }
  const std::string file = "an append-only file";
  // From this version on, Valkey loads it with all rights.
  const bool needs_rights = version_of(info.text("valkey_version")) < std::pair(9, 1);
  if (facts.default_may_load == false && needs_rights) {
    return warning(file + ", which the server loads as the user default, who lacks some rights",
                   "a restart loses locks: give that user its rights (~* &* +@all), even if it is off");
  }
  const auto& appendfsync = facts.appendfsync;
  if (!appendfsync) return fine(file + "; appendfsync is unknown, because this user may not use CONFIG GET");
  const std::string seen = file + ", appendfsync " + escaped(*appendfsync, 60);
  if (*appendfsync != "no" || facts.private_server) return fine(seen);
  return warning(seen, "a power failure loses locks that are not on disk yet: set appendfsync everysec");
}

Check check_eviction(const ServerInfo& info, const ServerFacts&) {
  const auto most = info.number("maxmemory"), used = info.number("used_memory");
  if (!most || !used) return unknown();
  if (*most <= 0) return fine("no memory limit");
  const std::string policy = shown(info, "maxmemory_policy");
  if (policy.empty()) return unknown();
  const long long percent = *used / std::max(*most / 100, 1LL);
  const std::string seen = std::to_string(percent) + " % of maxmemory used, maxmemory-policy " + policy;
  if (redis::evicts_by(info)) {
    return failure(seen, "the server may evict a lock that is held: set maxmemory-policy noeviction");
  }
  if (percent < kNearlyFull) return fine(seen);
  return warning(seen, "a server without free memory grants no locks: raise maxmemory, or delete keys");
}

// The longest time since a replica was last heard from, in seconds, from "slave0:…,lag=1".
long long longest_lag(const ServerInfo& info, long long replicas) {
  long long longest = 0;
  constexpr long long kMost = 100;
  for (long long i = 0; i < std::min(replicas, kMost); ++i) {
    const std::string line = info.text("slave" + std::to_string(i));
    const auto at = line.find("lag=");
    if (at != line.npos) longest = std::max(longest, std::strtoll(line.c_str() + at + 4, nullptr, 10));
  }
  return longest;
}

// 0 if there is none.
long long number_in(const std::optional<std::string>& text) { return whole_number(text.value_or("")).value_or(0); }

// A master that is cut off from its replicas and the Sentinels continues to grant locks, although these make a replica
// the new master, unless this is set; the epoch guard waits for kReplacedMasterGrants. False if it is unknown.
bool grants_when_cut_off(const ServerFacts& facts) {
  if (!facts.behind_sentinels || !facts.replicas_to_write || !facts.replicas_max_lag) return false;
  const long long lag = number_in(facts.replicas_max_lag);
  return number_in(facts.replicas_to_write) < 1 || lag < 1 || lag > lock::kLongestLag.count();
}

// How long it takes until all leases of a master that was cut off have expired: it stops granting when no replica has
// answered for `max_lag`, and a little later.
std::string safe_failover(const std::optional<std::string>& max_lag) {
  constexpr milliseconds later = lock::kReplacedMasterGrants - lock::kLongestLag;
  const std::string sum = " (min-replicas-max-lag + " + format_duration(later) + " + the lease of " +
                          format_duration(lock::kDefaultLease) + ")";
  const long long lag = number_in(max_lag);
  if (lag <= 0 || lag > 1000000) return "that time" + sum;
  return format_duration(std::chrono::seconds(lag) + later + lock::kDefaultLease) + sum;
}

// There is at least a warning, because a failover can lose locks with any set-up.
Check check_replicas(const ServerInfo& info, const ServerFacts& facts) {
  const auto replicas = info.number("connected_slaves");
  if (!replicas) return unknown();
  if (*replicas <= 0) return fine("none");
  const std::string to_write = escaped(facts.replicas_to_write.value_or("unknown"), 20);
  const std::string seen = std::to_string(*replicas) + " connected, last heard from " +
                           std::to_string(longest_lag(info, *replicas)) + "s ago at most; min-replicas-to-write " +
                           to_write + ", min-replicas-max-lag " +
                           escaped(facts.replicas_max_lag.value_or("unknown"), 20);
  if (grants_when_cut_off(facts)) {
    const std::string most = std::to_string(lock::kLongestLag.count());
    return failure(seen,
                   "a master that is cut off continues to grant locks, and so does its successor: on each server, "
                   "set min-replicas-to-write 1 and min-replicas-max-lag " +
                       most + " or less, and let no failover begin before the master has been unreachable for " +
                       safe_failover(most));
  }
  const std::string set = to_write == "0" ? "set min-replicas-to-write 1, and " : "";
  return warning(seen, "a failover loses locks that the replica has not received: " + set +
                           "allow no failover, not even a manual one, until the master has been unreachable for " +
                           safe_failover(facts.replicas_max_lag));
}

std::string ms_text(microseconds span) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f ms", static_cast<double>(span.count()) / 1000);
  return text;
}

// Each reading yields two bounds for how far the server's clock is ahead of ours. If it runs as evenly as ours, these
// ranges overlap; the result is the gap between them.
microseconds step_between(std::span<const ClockReading> readings) {
  const auto ahead = [](const ClockReading& reading, TimePoint then) {
    return *reading.server - std::chrono::duration_cast<microseconds>(then.time_since_epoch());
  };
  auto least = microseconds::min(), most = microseconds::max();
  for (const ClockReading& reading : readings) {
    if (!reading.server) continue;
    least = std::max(least, ahead(reading, reading.answered));
    most = std::min(most, ahead(reading, reading.sent));
  }
  return least > most ? least - most : microseconds{0};
}

}  // namespace

Check check_epoch(const Result<std::optional<lock::Epoch>>& epoch, bool guarded) {
  constexpr std::string_view name = "epoch";
  constexpr std::string_view accept =
      "if no job runs that took a lock before, rlock doctor --accept-epoch ends the wait";
  if (!epoch) {
    const bool other_key = epoch.error().code == Error::Code::wrong_kind;
    return {
        Verdict::warn, name, epoch.error().message,
        other_key ? "rlock doctor --accept-epoch replaces the key, and lets jobs with the epoch guard run again" : ""};
  }
  if (!*epoch) {
    return {Verdict::ok, name,
            guarded ? "no job has asked for a lock yet; the first one waits until forgotten leases would be over"
                    : "not guarded: rlock run --epoch-guard waits after a restart or a loss of data",
            ""};
  }
  const lock::Epoch& now = **epoch;
  if (now.back) return {Verdict::warn, name, who_waits(*now.back), std::string(accept)};
  if (!now.current) {
    return {Verdict::warn, name,
            "the server was restarted or failed over, and no job with the epoch guard has asked for a lock since; the "
            "first one may wait until forgotten leases are over",
            std::string(accept)};
  }
  const std::string longest = ", longest lease " + format_duration(now.longest);
  if (!now.accepted.empty()) return {Verdict::ok, name, "accepted by " + escaped(now.accepted, 200) + longest, ""};
  const std::string unforgotten = "nothing was forgotten" + (now.age ? " for " + rough_duration(*now.age) : "");
  return {Verdict::ok, name, unforgotten + longest, who_else_waits(now)};
}

Check check_lives(bool guarded) {
  constexpr std::string_view name = "epoch";
  const std::string seen = "no epoch guard, because INFO does not say master_replid or says only zeros";
  if (!guarded) {
    return {Verdict::warn, name, seen,
            "after a restart or a loss of data, let no job run until the longest lease is over"};
  }
  return {Verdict::fail, name, seen,
          "use a server that has one; only outside a quorum, jobs may run without it (--epoch-guard=false)"};
}

std::vector<Check> check_set_up(const ServerFacts& facts) {
  constexpr std::pair<std::string_view, Check (*)(const ServerInfo&, const ServerFacts&)> checks[] = {
      {"version", check_version},
      {"role", check_role},
      {"persistence", check_persistence},
      {"eviction", check_eviction},
      {"replicas", check_replicas}};
  std::vector<Check> all;
  for (const auto& [name, check] : checks) {
    all.push_back(facts.info ? check(*facts.info, facts) : unknown());
    all.back().name = name;
  }
  return all;
}

Check check_round_trip(std::span<const ClockReading> readings) {
  std::vector<microseconds> spans;
  for (const ClockReading& one : readings) {
    spans.push_back(std::chrono::duration_cast<microseconds>(one.answered - one.sent));
  }
  const auto middle = spans.begin() + static_cast<std::ptrdiff_t>(spans.size() / 2);
  std::ranges::nth_element(spans, middle);
  return {Verdict::ok, "round trip", ms_text(*middle) + ", median of " + std::to_string(spans.size()), ""};
}

Check check_clock(std::span<const ClockReading> readings) {
  const ClockReading& last = readings.back();
  if (!last.server)
    return {Verdict::fail, "clock", "TIME is refused", "rlock doctor --acl prints the necessary rights"};
  const auto step = step_between(readings);
  if (step > kLongestStep) {
    return {Verdict::warn, "clock", "stepped by " + ms_text(step) + " during the check",
            "steps of more than 500 ms end leases too early: make the server's host slew its clock"};
  }
  const auto ahead = std::chrono::duration_cast<milliseconds>(*last.server - last.ours);
  const std::string ours = ahead < 0ms ? "behind" : "ahead of";
  return {Verdict::ok, "clock", "runs evenly; " + std::to_string(std::abs(ahead.count())) + " ms " + ours + " ours",
          ""};
}

Check check_slots(int servers, int without) {
  const std::string seen = std::to_string(servers) + " servers share the locks";
  if (without == 0) return {Verdict::ok, "cluster", seen, ""};
  return {Verdict::fail, "cluster", seen + "; " + std::to_string(without) + " of 16384 hash slots have no server",
          "assign them (redis-cli --cluster fix), because their locks are unavailable"};
}

Check check_certificate(const redis::CertificateLife& life) {
  constexpr std::string_view name = "certificate";
  const std::string whose = life.of_authority ? "that of an authority in its chain is " : "";
  const std::string advice =
      life.of_authority ? "have the server's chain signed again, and give the new one to all clients (--tls-ca)"
                        : "renew the server's certificate";
  if (life.lasts < 0ms) return {Verdict::fail, name, life.of_authority ? whose + "expired" : "has expired", advice};
  const std::string seen = whose + "valid for " + rough_duration(life.lasts);
  if (life.lasts >= kRenewalTime) return {Verdict::ok, name, seen, ""};
  return {Verdict::warn, name, seen, advice};
}

Check check_sentinels(const Result<redis::Client::Standing>& standing) {
  using Standing = redis::Client::Standing;
  constexpr std::string_view name = "sentinels";
  if (standing == Standing::master) return {Verdict::ok, name, "more than half of them answer: this server", ""};
  if (standing == Standing::another)
    return {Verdict::warn, name, "they name another server now", "run rlock doctor again"};
  return {Verdict::warn, name, standing ? "no more than half of them answer" : standing.error().message,
          "make sure that all in the address run, and that this user may ask them (-v says why one does not answer)"};
}

}  // namespace rlock::cli
