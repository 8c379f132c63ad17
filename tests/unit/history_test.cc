// SPDX-License-Identifier: MIT
#include "lock/history.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

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

}  // namespace
}  // namespace rlock::lock
