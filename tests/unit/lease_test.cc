// SPDX-License-Identifier: MIT
#include "lock/lease.h"

#include <gtest/gtest.h>

#include "run/watchdog.h"

namespace rlock {
namespace {

using lock::LeaseTiming;

LeaseTiming timing(milliseconds lease) { return *LeaseTiming::make(lease, LeaseTiming::default_grace(lease)); }

TEST(LeaseTiming, IsThatOfTheDesignAtThirtySeconds) {
  EXPECT_EQ(timing(30s).renew_at, 10s);
  EXPECT_EQ(timing(30s).terminate_at, 23200ms);
  EXPECT_EQ(timing(30s).kill_at, 28200ms);
}

TEST(LeaseTiming, KeepsItsOrderForEveryLease) {
  for (milliseconds lease = 1s; lease < 2min; lease += 37ms) {
    const auto t = timing(lease);
    EXPECT_LT(t.renew_at, t.terminate_at) << lease.count();
    EXPECT_LT(t.terminate_at, t.kill_at) << lease.count();
    EXPECT_LT(t.kill_at, lease * 99 / 100) << lease.count();
    EXPECT_GE(t.terminate_at, t.renew_at + t.renew_timeout) << "room for one try";
  }
}

TEST(LeaseTiming, ScalesTheMarginsOfShortLeasesOnly) {
  EXPECT_EQ(timing(5s).kill_at, 4950ms - 1500ms);
  EXPECT_EQ(timing(1s).kill_at, 990ms - 300ms);
}

TEST(LeaseTiming, RefusesWhatCannotBeKept) {
  EXPECT_FALSE(LeaseTiming::make(999ms, 100ms));
  EXPECT_FALSE(LeaseTiming::make(30s, 28s));
  EXPECT_TRUE(LeaseTiming::make(30s, 10s));
  EXPECT_TRUE(LeaseTiming::make(30s, 0s));
}

class WatchdogTest : public testing::Test {
 protected:
  const TimePoint start{100s};
  run::Watchdog watchdog{timing(30s), start};
};

TEST_F(WatchdogTest, CountsFromTheSendingNotFromTheReply) {
  EXPECT_EQ(watchdog.next_renewal(), start + 10s);
  EXPECT_TRUE(watchdog.succeeded(start + 10s, start + 12s));
  EXPECT_EQ(watchdog.deadline(), start + 10s + 28200ms);
  EXPECT_EQ(watchdog.next_renewal(), start + 20s);
}

TEST_F(WatchdogTest, TriesAgainSoonAfterAFailure) {
  watchdog.failed(start + 11s);
  EXPECT_EQ(watchdog.next_renewal(), start + 12s);
  EXPECT_EQ(watchdog.deadline(), start + 28200ms) << "a failure moves no deadline";
}

TEST_F(WatchdogTest, ALateReplyResurrectsNothing) {
  EXPECT_FALSE(watchdog.succeeded(start + 10s, start + 23200ms)) << "the command is being stopped by now";
  EXPECT_EQ(watchdog.deadline(), start + 28200ms);
  EXPECT_FALSE(watchdog.succeeded(start + 10s, start + 10s + 24s)) << "its own time is over";
}

TEST_F(WatchdogTest, AnOlderSuccessDoesNotMoveBack) {
  EXPECT_TRUE(watchdog.succeeded(start + 12s, start + 13s));
  EXPECT_TRUE(watchdog.succeeded(start + 10s, start + 14s));
  EXPECT_EQ(watchdog.deadline(), start + 12s + 28200ms);
}

}  // namespace
}  // namespace rlock
