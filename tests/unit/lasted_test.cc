// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>

#include "verbs/verbs.h"

namespace rlock::lock {
namespace {

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
  EXPECT_FALSE(lasted(hold("7"), answer(ReleaseEnd::free, "7"), kEnds, kBefore));
  EXPECT_TRUE(lasted(hold("7"), answer(ReleaseEnd::free, "7"), kEnds, kEnds));
  EXPECT_FALSE(lasted(hold("7"), answer(ReleaseEnd::free, "8"), kEnds, kLater));
  EXPECT_FALSE(lasted(hold("7"), answer(ReleaseEnd::free, ""), kEnds, kLater));
  EXPECT_FALSE(lasted(hold(""), answer(ReleaseEnd::free, ""), kEnds, kLater));
}

}  // namespace
}  // namespace rlock::lock
