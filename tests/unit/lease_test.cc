// SPDX-License-Identifier: MIT
#include "verbs/lease.h"

#include <gtest/gtest.h>

#include "run/watchdog.h"

namespace rlock {
namespace {

using lock::LeaseTiming;

LeaseTiming timing(milliseconds lease) { return *LeaseTiming::make(lease, LeaseTiming::default_grace(lease)); }

TEST(LeaseTiming, IsThatOfTheDesignAndKeepsItsOrderForEveryLease) {
  EXPECT_EQ(timing(30s).renew_at, 10s);
  EXPECT_EQ(timing(30s).terminate_at, 23200ms);
  EXPECT_EQ(timing(30s).kill_at, 28200ms);
  // Only the margins of short leases are scaled.
  EXPECT_EQ(timing(5s).kill_at, 4950ms - 1500ms);
  EXPECT_EQ(timing(1s).kill_at, 990ms - 300ms);
  for (milliseconds lease = 1s; lease < 2min; lease += 37ms) {
    const auto t = timing(lease);
    EXPECT_LT(t.renew_at, t.terminate_at) << lease.count();
    EXPECT_LT(t.terminate_at, t.kill_at) << lease.count();
    EXPECT_LT(t.kill_at, lease * 99 / 100) << lease.count();
    EXPECT_GE(t.terminate_at, t.renew_at + t.renew_timeout) << "room for one try";
  }
  // A Java reader's renewal leaves the lock 30 s, no matter what lease rlock's reader has asked for.
  EXPECT_EQ(lock::kLongestReaderLease, 30s);
  EXPECT_LT(timing(lock::kLongestReaderLease).kill_at, 30s);
}

TEST(LeaseTiming, RefusesLeasesThatCannotBeKeptButAFixedOneNeedsNoTimeToRenew) {
  EXPECT_FALSE(LeaseTiming::make(999ms, 100ms));
  EXPECT_FALSE(LeaseTiming::make(30s, 28s));
  EXPECT_TRUE(LeaseTiming::make(30s, 10s));
  EXPECT_TRUE(LeaseTiming::make(30s, 0s));
  EXPECT_FALSE(LeaseTiming::make(30s, 20s));
  EXPECT_TRUE(LeaseTiming::make(30s, 20s, false));
  EXPECT_FALSE(LeaseTiming::make(30s, 28s, false));
}

class WatchdogTest : public testing::Test {
 protected:
  using Answer = run::Watchdog::Answer;
  const TimePoint start{100s};
  run::Watchdog watchdog{timing(30s), start};
};

TEST_F(WatchdogTest, CountsFromTheSendingNotFromTheReplyAndTriesAgainSoonAfterAFailure) {
  EXPECT_EQ(watchdog.next_renewal(), start + 10s);
  EXPECT_EQ(watchdog.succeeded(start + 10s, start + 12s, 20s), Answer::counts);
  EXPECT_EQ(watchdog.deadlines().kill_at(), start + 10s + 28200ms);
  EXPECT_EQ(watchdog.next_renewal(), start + 20s);
  watchdog.failed(start + 21s);
  EXPECT_EQ(watchdog.next_renewal(), start + 22s);
  EXPECT_EQ(watchdog.deadlines().kill_at(), start + 10s + 28200ms) << "a failure moves no deadline";
}

TEST_F(WatchdogTest, AsksAServerThatLacksTheHoldAtOnceAndThenLessAndLessOften) {
  TimePoint now = start + 5ms;
  for (const milliseconds pause : {0ms, 50ms, 100ms, 200ms, 400ms}) {
    watchdog.hurry(now);
    EXPECT_EQ(watchdog.next_renewal(), now + pause);
    now += pause;
    EXPECT_EQ(watchdog.succeeded(now, now, 30s - pause), Answer::counts);
    EXPECT_EQ(watchdog.next_renewal(), now + 10s);
  }
  for (int i = 0; i < 20; ++i) watchdog.hurry(now);
  EXPECT_EQ(watchdog.next_renewal(), now + 800ms) << "it is never put off";
  EXPECT_EQ(watchdog.succeeded(now, now, 30s), Answer::counts);
  watchdog.hurry(now);
  EXPECT_EQ(watchdog.next_renewal(), now + 10s) << "nor later than the next renewal";
  watchdog.calm();
  watchdog.hurry(now);
  EXPECT_EQ(watchdog.next_renewal(), now) << "it is another server, or another time";
}

TEST_F(WatchdogTest, ALateReplyResurrectsNothingAndAnOlderSuccessDoesNotMoveBack) {
  EXPECT_EQ(watchdog.succeeded(start + 10s, start + 23200ms, 20s), Answer::too_late)
      << "the command is being stopped by now";
  EXPECT_EQ(watchdog.deadlines().kill_at(), start + 28200ms);
  EXPECT_EQ(watchdog.succeeded(start + 10s, start + 10s + 24s, 20s), Answer::too_late) << "its own time is over";
  EXPECT_EQ(watchdog.succeeded(start + 12s, start + 13s, 18s), Answer::counts);
  EXPECT_EQ(watchdog.succeeded(start + 10s, start + 14s, 29s), Answer::counts);
  EXPECT_EQ(watchdog.deadlines().kill_at(), start + 12s + 28200ms);
}

TEST_F(WatchdogTest, AServerClockThatRanAheadShortensTheNextDeadline) {
  EXPECT_EQ(watchdog.succeeded(start + 10s, start + 10s, 17s), Answer::counts);
  EXPECT_EQ(watchdog.clock_lead(), 3s);
  EXPECT_EQ(watchdog.deadlines().kill_at(), start + 10s + 28200ms - 2500ms);
  EXPECT_EQ(watchdog.deadlines().terminate_at(), start + 10s + 23200ms - 2500ms);
  EXPECT_EQ(watchdog.next_renewal(), start + 20s);

  EXPECT_EQ(watchdog.succeeded(start + 20s, start + 20s, 20s), Answer::counts);
  EXPECT_EQ(watchdog.clock_lead(), 0s);
  EXPECT_EQ(watchdog.deadlines().kill_at(), start + 20s + 28200ms) << "it was a single step";
}

// The first renewal, sent after 10 s: when the reply came, what was left of the lease, and by how much the deadline is
// nearer.
TEST_F(WatchdogTest, OnlyAServerClockThatRunsAheadByMoreThanTheMarginChangesSomething) {
  const struct {
    milliseconds replied, left, lead, nearer, next;
    Answer answer = Answer::counts;
    const char* why;
  } kReplies[] = {
      {10s, 19600ms, 400ms, 0ms, 20s, Answer::counts, "a step within the margin"},
      {10s, 10s, 10s, 9500ms, 16850ms, Answer::counts, "it renews sooner if little is left"},
      {10s, 1s, 19s, 0ms, 10s, Answer::clock_runs_off, "a clock that runs away is not trusted"},
      {13s, 17s, 0ms, 0ms, 20s, Answer::counts, "executed at +13s: a slow reply"},
      {10s, 20min, 0ms, 0ms, 20s, Answer::counts, "extended by another client"},
  };
  for (const auto& one : kReplies) {
    watchdog = run::Watchdog(timing(30s), start);
    EXPECT_EQ(watchdog.succeeded(start + 10s, start + one.replied, one.left), one.answer) << one.why;
    if (one.answer != Answer::counts) continue;
    EXPECT_EQ(watchdog.clock_lead(), one.lead) << one.why;
    EXPECT_EQ(watchdog.deadlines().kill_at(), start + 10s + 28200ms - one.nearer) << one.why;
    EXPECT_EQ(watchdog.next_renewal(), start + one.next) << one.why;
  }
}

}  // namespace
}  // namespace rlock
