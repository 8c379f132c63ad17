// SPDX-License-Identifier: MIT
#include "lock/forecast.h"

#include <gtest/gtest.h>

namespace rlock::lock {
namespace {

HolderView holder_after(milliseconds held_for, std::vector<milliseconds> lasted) {
  HolderView holder{.held_for = held_for};
  holder.lasted = std::move(lasted);
  return holder;
}

const std::vector<milliseconds> kTen = {10s, 9s, 8s, 7s, 6s, 5s, 4s, 3s, 2s, 1s};

TEST(Forecast, AddsTheRestOfThePresentHoldAndAMedianForEachWaiterAheadFromFiveHoldsOn) {
  EXPECT_FALSE(forecast(holder_after(0s, {1s, 1s, 1s, 1s}), 0, 0));
  EXPECT_EQ(forecast(holder_after(0s, {1s, 1s, 1s, 1s, 1s}), 0, 0)->wait, 1s);
  const auto found = forecast(holder_after(2s, {4s, 4s, 4s, 4s, 4s, 4s}), 3, 0);
  EXPECT_EQ(found->wait, 14s);
  EXPECT_EQ(found->holds, 6u);
}

TEST(Forecast, ExpectsOfALongHoldWhatTheLongerOnesTook) {
  EXPECT_EQ(forecast(holder_after(0s, kTen), 0, 0)->wait, 5s);
  EXPECT_EQ(forecast(holder_after(7s, kTen), 0, 0)->wait, 2s);  // the median of 8, 9 and 10 s is 9 s
  const auto longest = forecast(holder_after(10s, kTen), 4, 0);
  EXPECT_TRUE(longest->longer);
  EXPECT_FALSE(longest->wait);
}

TEST(Forecast, KnowsTheMedianAndTheNinetiethPercentileAlsoWithoutAPlace) {
  const auto found = forecast(holder_after(0s, kTen), 0, 0);
  EXPECT_EQ(found->median, 5s);
  EXPECT_EQ(found->p90, 9s);
  const auto without = forecast(holder_after(0s, kTen), {}, 0);
  EXPECT_EQ(without->median, 5s);
  EXPECT_FALSE(without->wait);
}

TEST(Forecast, OfALockThatIsKeptIsTheEndOfItsLease) {
  HolderView holder = holder_after(1h, kTen);
  holder.who.ended = true;
  holder.expires_in = 3s;
  EXPECT_EQ(forecast(holder, 1, 0)->wait, 8s);
}

TEST(Forecast, OfASemaphoreDividesByItsSlotsAndWaitsForAllOfSeveral) {
  EXPECT_EQ(forecast(holder_after(9h, kTen), 5, 3)->wait, 10s);
  EXPECT_EQ(forecast(holder_after(9h, kTen), 0, 3, 3)->wait, 5s);
  EXPECT_EQ(forecast(holder_after(9h, kTen), 3, 4, 4)->wait, 8750ms);
}

TEST(Forecast, IsNotMadeForReadersAndWritersOrForAFreeSlot) {
  HolderView holder = holder_after(0s, kTen);
  holder.mode = "read";
  EXPECT_FALSE(forecast(holder, 0, 0));
  Status status{.lock = {*LockName::parse("s"), Layout::semaphore},
                .state = Status::State::held,
                .slots = 3,
                .taken = 2,
                .number = 2};
  status.holders = {holder_after(0s, {}), holder_after(0s, kTen)};
  EXPECT_FALSE(forecast(status));
  status.taken = 3;  // one of them has two
  EXPECT_EQ(forecast(status)->wait, milliseconds(5000) / 3);
}

TEST(Forecast, BelievesNothing) {
  EXPECT_TRUE(read_spans("").empty());
  EXPECT_EQ(read_spans("1 x  -3 99999999999999999999 4 "), (std::vector<milliseconds>{1ms, 4ms}));
  std::string many;
  for (int i = 0; i < 100; ++i) many += "315360000000 ";
  EXPECT_EQ(read_spans(many).size(), 20u);
  EXPECT_GT(*forecast(holder_after(0s, read_spans(many)), 1LL << 53, 0)->wait, 0s);
}

}  // namespace
}  // namespace rlock::lock
