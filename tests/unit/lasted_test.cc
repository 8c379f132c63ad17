// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "lock/verbs.h"

namespace rlock::lock {
namespace {

using Outcome = ReleaseOutcome;

const TimePoint kEnds{1h};
const TimePoint kBefore = kEnds - 1ms, kLater = kEnds + 1ms;

Hold hold(const std::string& token) {
  return {{*LockName::parse("job"), Layout::plain}, OwnerId::fresh(), "id", token, 30s, TimePoint{}};
}

Released answer(Outcome outcome, const std::string& token) { return {.outcome = outcome, .token = token}; }

TEST(Lasted, WhatWasReleasedWasOurs) {
  for (const Outcome outcome : {Outcome::released, Outcome::kept}) {
    EXPECT_TRUE(lasted(hold("7"), answer(outcome, ""), kEnds, kBefore));
    EXPECT_TRUE(lasted(hold("7"), answer(outcome, ""), kEnds, kLater));
  }
}

TEST(Lasted, FreeBeforeTheLeaseCouldEndIsALoss) {
  EXPECT_FALSE(lasted(hold("7"), answer(Outcome::free, "7"), kEnds, kBefore));
}

TEST(Lasted, FreeAfterTheLeaseIsNoneIfNobodyWasGrantedTheLockSince) {
  EXPECT_TRUE(lasted(hold("7"), answer(Outcome::free, "7"), kEnds, kEnds));
  EXPECT_FALSE(lasted(hold("7"), answer(Outcome::free, "8"), kEnds, kLater));
  EXPECT_FALSE(lasted(hold("7"), answer(Outcome::free, ""), kEnds, kLater));
}

TEST(Lasted, AnUnknownTokenProvesNothing) { EXPECT_FALSE(lasted(hold(""), answer(Outcome::free, ""), kEnds, kLater)); }

TEST(Lasted, WhoeverHoldsItNowMayHaveHadItBefore) {
  for (const Outcome outcome : {Outcome::other_owner, Outcome::other_kind}) {
    EXPECT_FALSE(lasted(hold("7"), answer(outcome, "7"), kEnds, kLater));
  }
}

}  // namespace
}  // namespace rlock::lock
