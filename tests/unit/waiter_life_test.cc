// SPDX-License-Identifier: MIT
#include "lock/waiter_life.h"

#include <gtest/gtest.h>

#include <climits>
#include <string>

namespace rlock::lock {
namespace {

constexpr const char* kWaiterActions[] = {"listen",     "hear",    "unhear", "disconnect", "ask", "tell_unreachable",
                                          "tell_moved", "prepare", "wait",   "poll",       "end"};

// A waiter with its own time, which starts at 0, and without randomness.
class Waiting {
 public:
  explicit Waiting(std::optional<milliseconds> limit = {}) : life_(plan(limit)) {}

  // What has happened, and the actions that follow, and until when a wait lasts: "listen", "hear releases,ask",
  // "prepare,wait 5000".
  std::string begin() { return words(life_.begin(now)); }
  std::string listens() { return words(life_.listens()); }
  std::string silent() { return words(life_.silent()); }
  std::string refused() { return words(life_.refused()); }
  std::string lost() { return words(life_.lost(now)); }
  std::string moved() { return words(life_.moved(now)); }
  std::string time() { return words(life_.time(now)); }
  std::string says(const std::string& text) { return words(life_.message(text, now)); }
  std::string failed(Error::Code code) { return words(life_.failed(code, now)); }
  std::string polled(std::optional<long long> ttl) { return words(life_.polled(ttl, now)); }
  std::string held(std::optional<long long> ahead, std::optional<milliseconds> expires_in, bool strayed = false) {
    return words(life_.held({.expires_in = expires_in, .ahead = ahead}, strayed, now));
  }
  std::string held_by_set(std::optional<milliseconds> expires_in, const std::string& owner = "") {
    HolderView holder{.owner = owner, .by_set = true};
    return words(life_.held({.expires_in = expires_in, .ahead = 0, .holder = holder}, false, now));
  }
  // One that has listened, and one that has also asked, and is the first.
  static Waiting listening(std::optional<milliseconds> limit = {}) {
    Waiting one(limit);
    one.begin();
    one.listens();
    return one;
  }
  static Waiting first(std::optional<milliseconds> limit = {}) {
    Waiting one = listening(limit);
    one.held(0, 1h);
    return one;
  }

  static constexpr TimePoint kBegin{1000s};
  TimePoint now = kBegin;

  const WaiterLife& life() const { return life_; }

 private:
  static WaiterPlan plan(std::optional<milliseconds> limit) {
    return {.end = limit ? kBegin + *limit : TimePoint::max(),
            .lease = 30s,
            .longest_look = 1h,
            .releases = "releases",
            .random = [](milliseconds) { return 0ms; }};
  }
  static std::string words(const WaiterLife::Actions& actions) {
    std::string all;
    for (const WaiterAction& action : actions) {
      all += (all.empty() ? "" : ",") + std::string(kWaiterActions[static_cast<int>(action.kind)]);
      if (!action.channel.empty()) all += " " + action.channel;
      if (action.until != TimePoint{}) all += " " + std::to_string((action.until - kBegin) / 1ms);
    }
    return all;
  }
  WaiterLife life_;
};

TEST(WaiterLife, ListensBeforeItAsksAndAsksEveryFiveSecondsIfItMayNot) {
  Waiting one;
  EXPECT_EQ(one.begin(), "listen");
  EXPECT_FALSE(one.life().place());
  EXPECT_EQ(one.listens(), "ask");
  EXPECT_TRUE(one.life().place());
  one = Waiting();
  one.begin();
  EXPECT_EQ(one.refused(), "ask");
  EXPECT_FALSE(one.life().place());
  EXPECT_EQ(one.held({}, 1h), "wait 5000");
  EXPECT_EQ(one.time(), "ask");
  one = Waiting();
  one.begin();
  EXPECT_EQ(one.silent(), "ask");
  EXPECT_EQ(one.held({}, 1h), "wait 500");
  EXPECT_EQ(one.time(), "listen");
}

TEST(WaiterLife, TheFirstListensForReleasesAndLooksAgainForWhatItMissed) {
  Waiting one = Waiting::first();
  one.held(0, 1h);
  EXPECT_EQ(one.says("behind"), "ask");
  EXPECT_EQ(one.held(1, 1h), "unhear releases,wait 5000");
  EXPECT_EQ(one.held(0, 1h), "hear releases,ask");
  one = Waiting::listening();
  EXPECT_EQ(one.held(0, 2s), "hear releases,ask");
  EXPECT_EQ(one.held(0, 2s), "prepare,wait 2001");
  EXPECT_EQ(one.time(), "ask");
  EXPECT_EQ(one.held(0, 1h), "prepare,wait 5000");  // never later
  one = Waiting::listening();
  EXPECT_EQ(one.held(1, 1h), "wait 5000");
  EXPECT_EQ(one.held(2, 1h), "wait 15000");
  EXPECT_EQ(one.held(9, 1h), "wait 35000");
  EXPECT_EQ(one.held(9, 3s), "wait 8000");  // the one in front may have died
  EXPECT_EQ(one.held(1LL << 53, 1h), "wait 35000");
}

TEST(WaiterLife, AGrantMessageIsProvenByTheServerAndAnOpenReleaseIsLeftToOthersForAMoment) {
  Waiting one = Waiting::first();
  EXPECT_EQ(one.says("granted"), "ask");
  one = Waiting::first();
  one.held(0, 1h);
  EXPECT_EQ(one.says("free"), "wait 100");
  EXPECT_EQ(one.says("0"), "wait 100");  // the same release
  one.now += 100ms;
  EXPECT_EQ(one.time(), "ask");
  EXPECT_EQ(one.held(0, 1h), "prepare,wait 5100");
  EXPECT_EQ(one.says("0"), "ask");  // another one
}

TEST(WaiterLife, ANewFirstWaiterHasMissedNothingIfTheLockHasJustChangedHandsOtherwiseItLooks) {
  Waiting one = Waiting::listening();
  one.held(3, 1h);
  EXPECT_EQ(one.says("first 2000"), "prepare,hear releases,wait 2001");
  EXPECT_EQ(one.says("first 1000"), "prepare,wait 1001");
  one = Waiting::listening();
  one.held(3, 1h);
  EXPECT_EQ(one.says("front"), "hear releases,ask");
}

TEST(WaiterLife, AnotherProgramsStringIsPolledMoreAndMoreSlowlyButPollsAreNotLooks) {
  Waiting one = Waiting::first();
  EXPECT_EQ(one.held_by_set(1h, "value"), "prepare,wait 5");
  for (const int pause : {10, 20, 40, 80, 160, 200, 200}) {
    EXPECT_EQ(one.time(), "poll");
    EXPECT_EQ(one.polled(3600000), "wait " + std::to_string(pause));
  }
  EXPECT_EQ(one.polled(20), "wait 21");  // never later than at its end
  EXPECT_EQ(one.polled(-2), "ask");      // deleted
  one = Waiting::first();
  one.held_by_set(1h);
  one.now += 5s;
  EXPECT_EQ(one.time(), "ask") << "says that it lives";
  EXPECT_EQ(one.held_by_set(1h), "prepare,wait 5005");
  EXPECT_EQ(one.polled({}), "ask") << "the server did not say";
}

// verbs/script.cc reads no others from a reply to acquire; polled() gets the server's number as it is.
TEST(WaiterLife, NoNumberOfAServerOverflows) {
  constexpr long long kMost = 1LL << 53, kRead[] = {0, 1, 5000, kMost};
  for (const long long ahead : kRead) {
    for (const long long left : kRead) {
      for (const long long ttl : {LLONG_MIN, -kMost, -1LL, 0LL, kMost, LLONG_MAX}) {
        Waiting one = Waiting::first();
        EXPECT_NE(one.held(ahead, milliseconds(left)), "");
        EXPECT_NE(one.held_by_set(milliseconds(left)), "");
        EXPECT_NE(one.polled(ttl), "");
      }
    }
  }
}

TEST(WaiterLife, AStringWithoutATtlIsNotWaitedForWithoutALimit) {
  const Held found{.holder = HolderView{.by_set = true}};
  EXPECT_TRUE(Waiting().life().never_free(found));
  EXPECT_FALSE(Waiting(1h).life().never_free(found));
}

TEST(WaiterLife, WaitsForAnUnreachableServerAsLongAsALeaseOrItsLimit) {
  Waiting one = Waiting::first();
  EXPECT_EQ(one.failed(Error::Code::unavailable), "tell_unreachable 30000,wait 1000");
  one.now += 31s;
  EXPECT_EQ(one.failed(Error::Code::unavailable), "end");
  one = Waiting::first(100s);
  one.now += 50s;
  EXPECT_EQ(one.failed(Error::Code::unavailable), "tell_unreachable 100000,wait 51000");
  EXPECT_EQ(one.failed(Error::Code::denied), "end");
  one.now += 50s;
  EXPECT_EQ(one.failed(Error::Code::unavailable), "end");
  one = Waiting::first(3s);
  EXPECT_EQ(one.held(0, 1h), "prepare,wait 3000");
  one.now += 3s;
  EXPECT_EQ(one.time(), "ask");
  EXPECT_EQ(one.held(0, 1h), "end");
}

TEST(WaiterLife, ListensAgainAfterALossAndWhereAnotherServerAnswers) {
  Waiting one = Waiting::first();
  EXPECT_EQ(one.lost(), "wait 100");
  EXPECT_FALSE(one.life().place());
  EXPECT_EQ(one.time(), "listen");
  one.listens();
  EXPECT_EQ(one.held(0, 1h), "hear releases,ask");
  one = Waiting::first();
  EXPECT_EQ(one.held(0, 1h, true), "disconnect,wait 500");
  EXPECT_EQ(one.time(), "listen");
  one = Waiting::first(1h);
  EXPECT_EQ(one.moved(), "tell_moved,wait 500");
  EXPECT_EQ(one.time(), "listen");
  one.now += 1h;
  EXPECT_EQ(one.moved(), "end");
}

}  // namespace
}  // namespace rlock::lock
