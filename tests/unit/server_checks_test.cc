// SPDX-License-Identifier: MIT
#include "cli/server_checks.h"

#include <gtest/gtest.h>

namespace rlock::cli {
namespace {

using redis::ClockReading;
using std::chrono::microseconds;

constexpr std::string_view kFine =
    "# Server\r\nredis_version:7.0.15\r\n\r\n# Memory\r\nused_memory:50\r\nmaxmemory:100\r\n"
    "maxmemory_policy:noeviction\r\n# Persistence\r\naof_enabled:1\r\n# Replication\r\nrole:master\r\n"
    "connected_slaves:0\r\n";

// The check of that name, if the server says `more` before everything else; the first of two fields counts.
Check check_of(std::string_view name, const std::string& more, ServerFacts facts = {}) {
  facts.info.emplace(more + "\r\n" + std::string(kFine));
  for (const Check& check : check_set_up(facts)) {
    if (check.name == name) return check;
  }
  return {Verdict::fail, "", "there is no such check", ""};
}

Verdict verdict_of(std::string_view name, const std::string& more, ServerFacts facts = {}) {
  return check_of(name, more, std::move(facts)).verdict;
}

TEST(ServerChecks, FindsNothingWhereAllIsWellAndSaysWhatItDoesNotKnow) {
  for (const Check& check : check_set_up({.info = redis::ServerInfo(kFine)})) {
    EXPECT_EQ(check.verdict, Verdict::ok) << check.name << ": " << check.seen;
    EXPECT_TRUE(check.advice.empty()) << check.name;
  }
  const auto checks = check_set_up({});
  EXPECT_EQ(checks.size(), 5u);
  for (const Check& check : checks) EXPECT_EQ(check.verdict, Verdict::warn);
  for (const Check& check : check_set_up({.info = redis::ServerInfo("hello\r\nredis_version:7.0\r\n")})) {
    EXPECT_EQ(check.verdict, check.name == "version" ? Verdict::ok : Verdict::warn) << check.name;
  }
}

TEST(ServerChecks, KnowsTheKindsOfServersAndEscapesTheirWords) {
  using enum Verdict;
  const struct {
    const char *info, *seen;
    Verdict verdict;
  } kServers[] = {
      {"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0", "Valkey 8.1.0", ok},
      {"redis_version:6.3.4\r\n# KeyDB\r\nmvcc_depth:0", "KeyDB 6.3.4", warn},
      {"redis_version:7.4.0\r\ndragonfly_version:df-v1.40.1", "Dragonfly df-v1.40.1", warn},
      {"redict_version:7.3.6\r\nredis_version:7.2.4", "Redict 7.3.6", ok},
      {"kvrocks_version:2.17.0\r\nredis_version:7.0.0", "Kvrocks 2.17.0", warn},
      {"garnet_version:2.2.8\r\nredis_version:7.4.3", "Garnet 2.2.8", warn},
      {"redis_version:6.0.16", "Redis 6.0.16", warn},
      {"redis_version:6.2.0", "Redis 6.2.0", ok},
      {"redis_version:10.0.0", "Redis 10.0.0", ok},
  };
  for (const auto& one : kServers) {
    EXPECT_EQ(check_of("version", one.info).seen, one.seen);
    EXPECT_EQ(verdict_of("version", one.info), one.verdict) << one.seen;
  }
  const Check check = check_of("version", "redis_version:7.0\x1b[2J");
  EXPECT_EQ(check.seen.find('\x1b'), std::string::npos);
}

TEST(ServerChecks, FindsServersThatForget) {
  EXPECT_EQ(verdict_of("role", "role:slave\r\nmaster_host:db\r\nmaster_port:6379"), Verdict::fail);
  EXPECT_EQ(verdict_of("role", "role:active-replica"), Verdict::fail);
  EXPECT_EQ(check_lives(true).verdict, Verdict::fail);
  EXPECT_EQ(check_lives(false).verdict, Verdict::warn);
  EXPECT_EQ(lock::life_said_by(redis::ServerInfo("master_replid:0\r\n")), "");
  EXPECT_EQ(lock::life_said_by(redis::ServerInfo("master_replid:0a\r\n")), "0a");
  EXPECT_EQ(verdict_of("persistence", "aof_enabled:0"), Verdict::warn);
  EXPECT_EQ(verdict_of("persistence", "", {.default_may_load = false}), Verdict::warn);
  EXPECT_EQ(verdict_of("persistence", "valkey_version:9.0.3", {.default_may_load = false}), Verdict::warn);
  EXPECT_EQ(verdict_of("persistence", "valkey_version:9.1.0", {.default_may_load = false}), Verdict::ok);
  EXPECT_EQ(verdict_of("persistence", "", {.appendfsync = "no"}), Verdict::warn);
  EXPECT_EQ(verdict_of("persistence", "", {.appendfsync = "always"}), Verdict::ok);
  EXPECT_EQ(verdict_of("eviction", "maxmemory_policy:volatile-ttl"), Verdict::fail);
  EXPECT_EQ(verdict_of("eviction", "maxmemory_policy:volatile-ttl\r\nmaxmemory:0"), Verdict::ok);
  EXPECT_EQ(verdict_of("eviction", "used_memory:9223372036854775807\r\nmaxmemory:1"), Verdict::warn);
  EXPECT_EQ(verdict_of("eviction", "used_memory:90"), Verdict::warn);
}

TEST(ServerChecks, SaysWhenAFailoverIsSafe) {
  const std::string two = "connected_slaves:2\r\nslave0:ip=1,state=online,lag=1\r\nslave1:ip=2,state=online,lag=7";
  const Check check = check_of("replicas", two, {.replicas_to_write = "0", .replicas_max_lag = "10"});
  EXPECT_EQ(check.verdict, Verdict::warn);
  EXPECT_NE(check.seen.find("2 connected, last heard from 7s ago"), std::string::npos) << check.seen;
  EXPECT_NE(check.advice.find("42s"), std::string::npos) << check.advice;
  EXPECT_NE(check.advice.find("set min-replicas-to-write 1"), std::string::npos) << check.advice;
  const Check unset = check_of("replicas", two, {.replicas_to_write = "1", .replicas_max_lag = "0"});
  EXPECT_EQ(unset.advice.find("42s"), std::string::npos) << unset.advice;
  EXPECT_EQ(unset.advice.find("set min"), std::string::npos) << unset.advice;
}

TEST(ServerChecks, FailsSentinelsWhosePrimaryGrantsWithoutReplicas) {
  const auto check = [](const char* to_write, const char* lag, bool sentinels = true) {
    return check_of("replicas", "connected_slaves:1\r\nslave0:ip=1,state=online,lag=1",
                    {.replicas_to_write = to_write, .replicas_max_lag = lag, .behind_sentinels = sentinels});
  };
  EXPECT_EQ(check("0", "10").verdict, Verdict::fail);
  EXPECT_NE(check("0", "10").advice.find("min-replicas-to-write 1"), std::string::npos) << check("0", "10").advice;
  EXPECT_EQ(check("1", "0").verdict, Verdict::fail);
  EXPECT_EQ(check("1", "11").verdict, Verdict::fail);  // longer than the epoch guard waits for
  EXPECT_EQ(check("1", "10").verdict, Verdict::warn);
  EXPECT_EQ(check("0", "10", false).verdict, Verdict::warn);
  EXPECT_EQ(check_of("replicas", "connected_slaves:1", {.behind_sentinels = true}).verdict, Verdict::warn);
}

// A reading that took `took`, `after` the first one, of a server whose clock has gained `gained` since.
ClockReading reading(microseconds after, microseconds took, microseconds gained = {}) {
  const TimePoint sent = TimePoint{} + 1h + after;
  return {sent, sent + took, 5s, microseconds(5s) + after + took / 2 + gained};
}

TEST(ServerChecks, TakesTheMedianOfTheRoundTripsAndSeesAStepOfTheClock) {
  const ClockReading readings[] = {reading(0s, 1ms), reading(1s, 900ms), reading(2s, 2ms)};
  EXPECT_EQ(check_round_trip(readings).seen, "2.00 ms, median of 3");
  const auto verdict = [](microseconds took, microseconds gained) {
    const ClockReading around[] = {reading(0s, took), reading(50ms, took, gained), reading(100ms, took)};
    return check_clock(around).verdict;
  };
  EXPECT_EQ(verdict(1ms, 0s), Verdict::ok);
  EXPECT_EQ(verdict(1ms, 5ms), Verdict::ok);
  EXPECT_EQ(verdict(1ms, 30ms), Verdict::warn);
  EXPECT_EQ(verdict(1ms, -30ms), Verdict::warn);
  EXPECT_EQ(verdict(100ms, 30ms), Verdict::ok);  // it may have been the network
  const ClockReading withheld[] = {{TimePoint{}, TimePoint{} + 1ms, 5s, {}}};
  EXPECT_EQ(check_clock(withheld).verdict, Verdict::fail);
}

TEST(ServerChecks, CountsTheDaysOfACertificate) {
  EXPECT_EQ(check_certificate({24h * 14}).verdict, Verdict::ok);
  EXPECT_EQ(check_certificate({24h * 14 - 1s}).verdict, Verdict::warn);
  EXPECT_EQ(check_certificate({24h * 14 - 1s}).seen, "valid for 13d23h");
  EXPECT_EQ(check_certificate({-1s}).verdict, Verdict::fail);
  EXPECT_EQ(check_certificate({24h, true}).seen, "that of an authority in its chain is valid for 1d00h");
}

}  // namespace
}  // namespace rlock::cli
