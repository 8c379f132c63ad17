// SPDX-License-Identifier: MIT
#include "lock/report.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lock/forecast.h"
#include "verbs/script.h"

namespace rlock::lock {
namespace {

using Outcome = PastHold::Outcome;

PastHold past(long ended, Outcome outcome, std::string owner, std::string end = "", std::string token = "") {
  PastHold hold{.name = *LockName::parse("a"), .outcome = outcome, .ended = milliseconds(ended)};
  hold.owner = std::move(owner);
  hold.end = std::move(end);
  hold.token = std::move(token);
  return hold;
}

// "owner outcome end" of each.
std::string words(const std::vector<PastHold>& holds) {
  std::string text;
  for (const PastHold& hold : holds) text += hold.owner + " " + std::string(word(hold.outcome)) + " " + hold.end + ";";
  return text;
}

std::vector<PastHold> all_of(StreamOfHolds& stream) {
  std::vector<PastHold> all;
  while (stream.next(0)) all.push_back(stream.take());
  return all;
}

std::string joined(const std::vector<PastHold>& entries) {
  StreamOfHolds stream;
  for (const PastHold& entry : entries) stream.add(entry);
  return words(all_of(stream));
}

TEST(JoinHistory, JoinsTheTwoEntriesOfOneHoldAndKeepsOthersSeparate) {
  EXPECT_EQ(joined({past(2, Outcome::gone, "o", "lost"), past(1, Outcome::forced, "o")}), "o forced lost;");
  EXPECT_EQ(joined({past(2, Outcome::forced, "o"), past(1, Outcome::kept, "o", "exited")}), "o forced exited;");
  EXPECT_EQ(joined({past(2, Outcome::gone, "o", "lost"), past(1, Outcome::gone, "o", "expired")}), "o gone lost;");
  EXPECT_EQ(joined({past(2, Outcome::gone, "o"), past(1, Outcome::gone, "o", "expired")}), "o gone expired;");
  EXPECT_EQ(joined({past(2, Outcome::gone, "o", "expired"), past(1, Outcome::gone, "o", "expired")}),
            "o gone expired;o gone expired;");
  EXPECT_EQ(joined({past(2, Outcome::forced, "o"), past(1, Outcome::forced, "o")}), "o forced ;o forced ;");
  EXPECT_EQ(joined({past(2, Outcome::forced, "o"), past(1, Outcome::released, "o", "released")}),
            "o forced ;o released released;");
  EXPECT_EQ(joined({past(2, Outcome::gone, "", "lost"), past(1, Outcome::forced, "")}), " gone lost; forced ;");
  EXPECT_EQ(joined({past(3, Outcome::gone, "o", "lost"), past(2, Outcome::forced, "o"), past(1, Outcome::forced, "o")}),
            "o forced lost;o forced ;");
  EXPECT_EQ(joined({past(2, Outcome::gone, "o", "lost"), past(1, Outcome::released, "p")}), "o gone lost;p released ;");
}

TEST(JoinHistory, ALeaseHasEndedIfMostServersSaySoAndTheSameHoldOnSeveralIsOne) {
  const std::vector<PastHold> expired = {past(1, Outcome::gone, "o", "expired", "7")};
  EXPECT_EQ(words(merged_holds({expired, expired, {}}, 9)), "o gone expired;");
  EXPECT_EQ(words(merged_holds({expired, {}, {}}, 9)), "");
  const std::vector<PastHold> released = {past(2, Outcome::released, "o", "exited", "7")};
  EXPECT_EQ(words(merged_holds({{released[0], expired[0]}, released, released}, 9)), "o released exited;");
  const std::vector<PastHold> one = {past(12, Outcome::released, "o", "exited", "7"), past(3, Outcome::forced, "f"),
                                     past(2, Outcome::forced, "f")};
  const std::vector<PastHold> two = {past(11, Outcome::released, "o", "exited", "7"), past(4, Outcome::forced, "f")};
  const std::vector<PastHold> lost_data = {past(13, Outcome::gone, "o", "exited", "7")};
  EXPECT_EQ(words(merged_holds({lost_data, one, two}, 100)), "o released exited;f forced ;f forced ;");
  EXPECT_EQ(words(merged_holds({lost_data, one, two}, 2)), "o released exited;f forced ;");
  EXPECT_EQ(words(merged_holds({{past(2, Outcome::gone, "o", "lost")}, {past(1, Outcome::forced, "o")}}, 9)),
            "o forced lost;");
  const PastHold later = past(2, Outcome::released, "o", "", "8"), sooner = past(1, Outcome::released, "o", "", "7");
  EXPECT_EQ(words(merged_holds({{later}, {sooner}}, 9)), "o released ;o released ;");
}

TEST(JoinHistory, AnUnwantedEntryCompletesAWantedHold) {
  StreamOfHolds failed([](const PastHold& hold) { return !hold.fine(); });
  failed.add(past(4, Outcome::forced, "o"));
  failed.add(past(3, Outcome::released, "p", "released"));
  PastHold kept = past(2, Outcome::kept, "o", "exited");
  kept.value = 0;
  kept.waited = milliseconds(7);
  failed.add(kept);
  const auto holds = all_of(failed);
  EXPECT_EQ(words(holds), "o forced exited;");
  EXPECT_EQ(holds.front().waited, milliseconds(7));
}

HolderView holder_after(milliseconds held_for, std::vector<milliseconds> lasted) {
  HolderView holder{.held_for = held_for};
  holder.lasted = std::move(lasted);
  return holder;
}

const std::vector<milliseconds> kTen = {10s, 9s, 8s, 7s, 6s, 5s, 4s, 3s, 2s, 1s};

TEST(Report, OfManyHoldsWithImpossibleTimesIsMadeAtOnceAndWithoutAnOverflow) {
  constexpr milliseconds kTenYears = 315'360'000'000ms;
  std::vector<PastHold> holds;
  for (int i = 0; i < 100'000; ++i) {
    const bool waits = i % 2 == 1;
    holds.push_back({.name = *LockName::parse("a"), .ended = kTenYears + (waits ? 1ms : 0ms)});
    holds.back().held = waits ? 1ms : kTenYears;
    holds.back().waited = waits ? kTenYears : 0ms;
  }
  const Report report = report_on(std::move(holds)).at(0);
  EXPECT_EQ(report.runs, 100'000u);
  EXPECT_EQ(report.longest_queue, 50'000u);
  ASSERT_EQ(report.causes.size(), 1u);
  EXPECT_EQ(report.causes[0].waited_for, milliseconds(1'000'000h));
  EXPECT_EQ(report.waited->total, 50'000 * kTenYears);
}

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
  // If the lock is kept: the end of its lease.
  HolderView holder = holder_after(1h, kTen);
  holder.who.ended = true;
  holder.expires_in = 3s;
  EXPECT_EQ(forecast(holder, 1, 0)->wait, 8s);
}

TEST(Forecast, KnowsTheMedianAndTheNinetiethPercentileAlsoWithoutAPlace) {
  const auto without = forecast(holder_after(0s, kTen), {}, 0);
  EXPECT_EQ(without->median, 5s);
  EXPECT_EQ(without->p90, 9s);
  EXPECT_FALSE(without->wait);
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
