// SPDX-License-Identifier: MIT

#include <gtest/gtest.h>

#include "lock/tally.h"
#include "verbs/verbs.h"

namespace rlock::lock {
namespace {

TEST(Ballot, AMajorityIsMoreThanHalfAndSettledWhenFurtherVotesCannotChangeIt) {
  EXPECT_EQ(majority_of(3), 2u);
  EXPECT_EQ(majority_of(5), 3u);
  EXPECT_EQ(majority_of(7), 4u);
  for (std::size_t voters = 1; voters < 100; ++voters) EXPECT_GT(2 * majority_of(voters), voters);
  for (const auto& [yes, no] : {std::pair{2, 0}, {2, 2}}) EXPECT_FALSE(is_settled(5, yes, no));
  for (const auto& [yes, no] : {std::pair{3, 0}, {0, 3}, {1, 3}}) EXPECT_TRUE(is_settled(5, yes, no));
}

class Election : public testing::Test {
 protected:
  AcquireRequest one{.name = *LockName::parse("job"), .lease = 30s};
};

Result<Vote> grant(const OwnerId& owner, const std::string& token, const std::string& unfit = "") {
  return Vote{Hold{{*LockName::parse("job")}, owner, owner.first_hold(), token, 30s, {}}, unfit};
}

Result<Vote> held_by(const std::string& owner) { return Vote{Held{.holder = HolderView{.owner = owner}}, ""}; }

Result<Vote> away(Error::Code code = Error::Code::unavailable) { return fail(code, "away"); }

Result<Acquired> elected(const AcquireRequest& one, const Answers<Vote>& votes) { return elect(one, votes, {}); }

TEST_F(Election, AMajorityGrantsWithTheLargestTokenFromBeforeTheFirstRequestOn) {
  const auto election = elected(one, {grant(one.owner, "9"), grant(one.owner, "10"), away()});
  ASSERT_TRUE(as<Hold>(election));
  EXPECT_EQ(as<Hold>(election)->token, "10");
  EXPECT_EQ(as<Hold>(election)->owner, one.owner);
  // The hold counts from the first request, no matter when the servers were asked.
  const TimePoint sent = TimePoint{} + 5s;
  auto late = grant(one.owner, "1");
  std::get<Hold>(late->answer).sent = late->sent = sent + 1s;
  EXPECT_EQ(as<Hold>(elect(one, {late, late, away()}, sent))->sent, sent);
}

TEST_F(Election, IgnoresGrantsThatDoNotCount) {
  const auto election = elected(one, {grant(one.owner, "9"), grant(one.owner, "10", "young"), away()});
  ASSERT_FALSE(election);
  EXPECT_EQ(election.error().code, Error::Code::unavailable);
  EXPECT_NE(election.error().message.find("young"), std::string::npos);
}

// Held by others on too few servers for them, and too many for us.
bool contested(const Result<Acquired>& election) {
  return as<Held>(election) && !as<Held>(election)->contested.empty();
}

TEST_F(Election, IsHeldByAnotherOnlyOnAMajorityAndSaysWhoseVoteIsMissing) {
  const auto held = elected(one, {held_by("a"), held_by("a"), grant(one.owner, "1")});
  EXPECT_TRUE(as<Held>(held));
  EXPECT_FALSE(contested(held));
  EXPECT_TRUE(contested(elected(one, {held_by("a"), held_by("b"), grant(one.owner, "1")})));
  EXPECT_FALSE(elected(one, {held_by("a"), away(), away()}));
  const auto election = elected(one, {held_by("a"), grant(one.owner, "1", "young"), away()});
  ASSERT_TRUE(contested(election));
  EXPECT_TRUE(
      as<Held>(election)->contested.starts_with("others hold it on 1 of 3 servers, and no one on a majority; young; "));
  EXPECT_EQ(as<Held>(elected(one, {held_by("a"), held_by("a"), away()}))->contested, "");
  // Grants to two owners are not added up.
  one.heir = OwnerId::fresh();
  EXPECT_TRUE(
      contested(elected(one, {grant(one.owner, "1"), grant(*one.heir, "2"), held_by("x"), held_by("x"), away()})));
}

// Redisson's RedLock has a UUID for each server, and one thread.
TEST_F(Election, ARedLockIsOneHolder) {
  const auto held = elected(one, {held_by("a:7"), held_by("b:7"), grant(one.owner, "1")});
  EXPECT_TRUE(as<Held>(held));
  EXPECT_FALSE(contested(held));
  EXPECT_TRUE(contested(elected(one, {held_by("a:7"), held_by("b:8"), grant(one.owner, "1")})));
  // A holder of rlock has one id on all servers, and a string has one value.
  EXPECT_EQ(common_id({.owner = "a:7", .described = true}), "a:7");
  EXPECT_EQ(common_id({.owner = "a:7", .by_set = true}), "a:7");
  EXPECT_EQ(common_id({.owner = "a:7", .mode = "read"}), "a:7");
  EXPECT_EQ(common_id({.owner = "b:7"}), "7");
}

TEST_F(Election, TheErrorOfAMajorityCounts) {
  using enum Error::Code;
  EXPECT_EQ(elected(one, {away(denied), away(denied), grant(one.owner, "1")}).error().code, denied);
  EXPECT_EQ(elected(one, {away(denied), away(), grant(one.owner, "1")}).error().code, unavailable);
}

TEST_F(Election, TheLongestLeaseIsThatOfAnyHolder) {
  const auto longest = [&](const HolderView& holder, milliseconds expires_in = 1s) {
    auto vote = held_by("a");
    vote->answer = Held{.expires_in = expires_in, .holder = holder};
    return longest_lease(one, {grant(one.owner, "1"), vote, away()});
  };
  EXPECT_EQ(longest({}), 30s);
  EXPECT_EQ(longest({.held_for = 2h, .lease = 20s}), 30s);  // renewed since
  EXPECT_EQ(longest({.lease = 100s}), 100s);
  EXPECT_EQ(longest({}, 50s), 50s);
  EXPECT_EQ(longest({.expires_in = 60s}), 60s);
  EXPECT_EQ(longest({.who = {.ended = true}, .held_for = 60s, .lease = 30s}, 40s), 100s);
  // No number from a server makes a sum that is too large.
  EXPECT_LT(longest({.expires_in = milliseconds::max(), .held_for = milliseconds::max(), .lease = milliseconds::max()},
                    milliseconds::max()),
            std::chrono::years(40));
}

Renewed renewal(RenewOutcome outcome) { return {.outcome = outcome}; }

TEST(Renewals, AreCountedForEachHoldAndNoAnswerIsNotANo) {
  using enum RenewOutcome;
  const Answers<Renewals> answers = {Renewals{renewal(renewed), renewal(free)},
                                     Renewals{renewal(renewed), renewal(renewed)},
                                     Renewals{renewal(free), renewal(renewed)}};
  EXPECT_EQ(merge_renewals(answers, 0)->outcome, renewed);
  EXPECT_EQ(merge_renewals(answers, 1)->outcome, renewed);
  const Answers<Renewals> without = {Renewals{renewal(renewed)}, Renewals{renewal(free)},
                                     std::unexpected(Error{Error::Code::unavailable, ""})};
  EXPECT_FALSE(merge_renewals(without, 0));
}

Result<Released> said(ReleaseOutcome outcome, const std::string& token = "") {
  return Released{.outcome = outcome, .token = token};
}

TEST(Releases, AMajorityHasReleasedItAndAgreesOnTheLastToken) {
  using enum ReleaseOutcome;
  const auto away = fail(Error::Code::unavailable, "away");
  EXPECT_EQ(merge_releases({said(released), said(released), away})->outcome, released);
  EXPECT_EQ(merge_releases({said(released), said(free), said(free)})->outcome, free);
  EXPECT_FALSE(merge_releases({said(released), said(free), away}));
  EXPECT_EQ(merge_releases({said(free, "5"), said(free, "5"), said(free, "7")})->token, "5");
  EXPECT_EQ(merge_releases({said(free, "5"), said(free, "6"), said(free, "7")})->token, "");
}

redis::Reply info(const std::string& run_id, int uptime, const std::string& more = "") {
  return {.kind = redis::Reply::Kind::string,
          .text = "run_id:" + run_id + "\r\nuptime_in_seconds:" + std::to_string(uptime) + "\r\n" + more};
}

TEST(Voter, VotesOnceItIsOlderThanALeaseAndIsNewWhenItsRunIdHasChanged) {
  const TimePoint now = BootClock::now();
  Voter young, old;
  EXPECT_TRUE(old.unfit(30s, now));  // it has said nothing yet
  young.heard(info("a", 31), now);
  old.heard(info("b", 40), now);
  EXPECT_TRUE(young.unfit(30s, now));
  EXPECT_FALSE(old.unfit(30s, now));
  EXPECT_TRUE(old.unfit(60s, now));
  EXPECT_FALSE(young.unfit(30s, now + 10s));
  Voter one;
  one.heard(info("a", 4000), now);
  EXPECT_FALSE(one.unfit(30s, now));
  one.heard(info("b", 4000), now + 1s);
  EXPECT_TRUE(one.unfit(30s, now + 2s));
  EXPECT_FALSE(one.unfit(30s, now + 60s));
  // Without INFO it does not vote.
  one.heard({.kind = redis::Reply::Kind::error, .text = "NOPERM this user has no permissions to run 'info'"},
            now + 60s);
  EXPECT_TRUE(one.unfit(30s, now + 60s));
  one.heard(info("b", 99999999), now + 60s);
  EXPECT_FALSE(one.unfit(30s, now + 60s));
}

TEST(Voter, DependentServersAreNotAQuorum) {
  const TimePoint now = BootClock::now();
  Voter a, b, same, replica, related;
  a.heard(info("a", 9, "master_replid:x\r\nrole:master\r\n"), now);
  b.heard(info("b", 9, "master_replid:y\r\nrole:master\r\n"), now);
  same.heard(info("a", 9, "master_replid:x\r\n"), now);
  related.heard(info("c", 9, "master_replid:x\r\nrole:master\r\n"), now);
  replica.heard(info("d", 9, "master_replid:z\r\nrole:slave\r\n"), now);
  EXPECT_TRUE(Voter::expect_independent({&a, &b}, {"1", "2"}));
  for (const Voter* other : {&same, &related, &replica}) {
    const auto found = Voter::expect_independent({&a, other}, {"1", "2"});
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Error::Code::config);
  }
}

using ReleaseEnd = ReleaseOutcome;

const TimePoint kEnds{1h};
const TimePoint kBefore = kEnds - 1ms, kLater = kEnds + 1ms;

Hold hold(const std::string& token) {
  return {{*LockName::parse("job"), Layout::plain}, OwnerId::fresh(), "id", token, 30s, TimePoint{}};
}

Released answer(ReleaseEnd outcome, const std::string& token) { return {.outcome = outcome, .token = token}; }

TEST(Lasted, WhatWasReleasedWasOursAndAnyCurrentHolderMayHaveHadItBefore) {
  for (const ReleaseEnd outcome : {ReleaseEnd::released, ReleaseEnd::kept}) {
    EXPECT_TRUE(lasted(hold("7"), answer(outcome, ""), kEnds, kBefore));
    EXPECT_TRUE(lasted(hold("7"), answer(outcome, ""), kEnds, kLater));
  }
  for (const ReleaseEnd outcome : {ReleaseEnd::other_owner, ReleaseEnd::other_kind}) {
    EXPECT_FALSE(lasted(hold("7"), answer(outcome, "7"), kEnds, kLater));
  }
}

TEST(Lasted, FreeIsALossUnlessTheLeaseIsOverAndNobodyWasGrantedTheLockSince) {
  const auto lasts = [](const char* mine, const char* last, TimePoint now) {
    return lasted(hold(mine), answer(ReleaseEnd::free, last), kEnds, now);
  };
  EXPECT_TRUE(lasts("7", "7", kEnds));
  EXPECT_FALSE(lasts("7", "7", kBefore) || lasts("7", "8", kLater) || lasts("7", "", kLater) || lasts("", "", kLater));
}

}  // namespace
}  // namespace rlock::lock
