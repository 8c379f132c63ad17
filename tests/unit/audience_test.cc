// SPDX-License-Identifier: MIT
#include "redis/endpoint.h"

#include <gtest/gtest.h>

namespace rlock::redis {
namespace {

// How many of a hundred hosts get the password, one after another.
int admitted(Audience& audience) {
  static int port = 0;
  int count = 0;
  for (int i = 0; i < 100; ++i) {
    const Host host{"h", ++port};
    if (!audience.admits(host)) continue;
    audience.add(host);
    ++count;
  }
  return count;
}

TEST(Audience, AsManyAsThereAreServers) {
  Audience audience({{"seed", 1}}, 1);
  EXPECT_EQ(admitted(audience), 0);
  EXPECT_TRUE(audience.admits({"seed", 1}));
  audience.expect(4);
  EXPECT_EQ(admitted(audience), 3);
  EXPECT_EQ(admitted(audience), 0);
}

TEST(Audience, NotMoreThanAnExchangeNeeds) {
  Audience audience({}, 1000);
  EXPECT_EQ(admitted(audience), 1 + kMostRedirections);
  audience.begin(20);
  EXPECT_EQ(admitted(audience), 19);
}

TEST(Audience, AHostThatHasItMayGetItAgain) {
  Audience audience({}, 1);
  audience.add({"a", 1});
  EXPECT_TRUE(audience.admits({"a", 1}));
  EXPECT_FALSE(audience.admits({"a", 2}));
}

TEST(Audience, StartsAgainWhenOneServes) {
  Audience audience({}, 3);
  EXPECT_EQ(admitted(audience), 3);
  audience.served();
  EXPECT_EQ(admitted(audience), 3);
}

}  // namespace
}  // namespace rlock::redis
