// SPDX-License-Identifier: MIT
// What tests/model/deadlock.cc does not search: texts, and records that must not count.
#include "lock/deadlock.h"

#include <gtest/gtest.h>

namespace rlock::lock {
namespace {

// A lock that `owner` holds, and for which a waiter waits that holds `held`, "owner name".
Status lock_with(const std::string& name, const std::string& owner, const std::string& id, const std::string& held) {
  Status status{.lock = {*LockName::parse(name)}, .state = Status::State::held, .number = 1};
  status.holders.push_back({.owner = owner});
  WaiterView waiter{.id = id, .listens = true};
  waiter.who.host = "h";
  waiter.who.pid = static_cast<unsigned char>(id.back());
  waiter.who.within = AncestorLocks::parse(held);
  status.queue.push_back(waiter);
  return status;
}

std::vector<Status> circle_of_two() {
  return {lock_with("a", "o1:1", "w2", "o2:1 b"), lock_with("b", "o2:1", "w1", "o1:1 a")};
}

TEST(Deadlock, IsToldToEachOfItsMembers) {
  const auto found = deadlocks_in(circle_of_two());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].text("w1"), "you hold a, and pid 50 on h holds b and waits for a");
  EXPECT_EQ(found[0].text("w2"), "you hold b, and pid 49 on h holds a and waits for b");
  EXPECT_EQ(found[0].text(), "pid 49 on h holds a and waits for b, and pid 50 on h holds b and waits for a");
}

TEST(Deadlock, MayHaveOneMember) {
  const auto found = deadlocks_in(std::vector{lock_with("a", "o1:1", "w1", "o1:1 a")});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].text("w1"), "you hold a and wait for it");
}

TEST(Deadlock, TextsAreEscaped) {
  auto locks = circle_of_two();
  locks[0].queue[0].who.host = "\033[2J";
  EXPECT_EQ(deadlocks_in(locks)[0].text().find('\033'), std::string::npos);
}

TEST(Deadlock, NeedsWaitersThatListen) {
  auto locks = circle_of_two();
  locks[1].queue[0].listens = false;
  EXPECT_TRUE(deadlocks_in(locks).empty());
}

TEST(Deadlock, NeedsTheOwnersThatHoldTheLocksNow) {
  auto locks = circle_of_two();
  locks[1].holders[0].owner = "o3:1";
  EXPECT_TRUE(deadlocks_in(locks).empty());
}

TEST(Deadlock, NeedsAllSlotsToBeKnown) {
  auto locks = circle_of_two();
  locks[0].lock.layout = Layout::semaphore;
  locks[0].slots = 1;
  EXPECT_EQ(deadlocks_in(locks).size(), 1u);
  locks[0].slots = 2;  // one is free
  EXPECT_TRUE(deadlocks_in(locks).empty());
  locks[0].number = 2;  // one is not in the list
  EXPECT_TRUE(deadlocks_in(locks).empty());
}

TEST(Deadlock, OwnersOfSeveralSlotsCountThemEvenWithoutNumbers) {
  const std::string owner = OwnerId::fresh_for_slots(2).text();
  std::vector<Status> locks = {lock_with("a", owner, "w2", "o2:1 b"), lock_with("b", "o2:1", "w1", owner + " a")};
  locks[0].lock.layout = Layout::semaphore;
  locks[0].slots = 2;
  EXPECT_EQ(deadlocks_in(locks).size(), 1u);
  locks[0].slots = 3;
  EXPECT_TRUE(deadlocks_in(locks).empty());
}

TEST(Deadlock, WaitsBehindOneThatWantsMoreSlots) {
  auto locks = circle_of_two();
  locks[0].lock.layout = Layout::semaphore;
  locks[0].slots = 2;
  auto& queue = locks[0].queue;
  queue.insert(queue.begin(), {.taken = 2, .listens = true});
  EXPECT_EQ(deadlocks_in(locks).size(), 1u);
  queue[0].listens = false;  // it may be dead
  EXPECT_TRUE(deadlocks_in(locks).empty());
  queue[0].listens = true;
  std::swap(queue[0], queue[1]);
  EXPECT_TRUE(deadlocks_in(locks).empty());
}

TEST(Deadlock, IsAnotherOneWithOtherHoldersOrWaiters) {
  const std::string essence = deadlocks_in(circle_of_two())[0].essence;
  auto locks = circle_of_two();
  locks[0].holders.push_back({.owner = "o9:1"});
  EXPECT_NE(deadlocks_in(locks)[0].essence, essence);
  locks = circle_of_two();
  locks[0].queue[0].id = "w9";
  EXPECT_NE(deadlocks_in(locks)[0].essence, essence);
  EXPECT_EQ(deadlocks_in(circle_of_two())[0].essence, essence);
}

TEST(Deadlock, IsMarkedAtTheLocksOfItsMembers) {
  auto locks = circle_of_two();
  locks.push_back(lock_with("c", "o3:1", "w3", "o4:1 d"));
  mark_deadlocks(locks, [](const LockName&) { return std::nullopt; });
  EXPECT_EQ(locks[0].deadlock, locks[1].deadlock);
  EXPECT_NE(locks[0].deadlock, "");
  EXPECT_EQ(locks[2].deadlock, "");
}

TEST(Deadlock, TheSearchHasAnEnd) {
  // Someone has written records of ever more locks.
  int looked = 0;
  const auto look = [&](const LockName& name) -> std::optional<Status> {
    const std::string next = "n" + std::to_string(++looked);
    return lock_with(name.text(), "o:1", "w" + next, "o:1 " + next);
  };
  EXPECT_FALSE(deadlock_of("me", AncestorLocks::parse("o:1 a"), look));
  EXPECT_LT(looked, 200);
}

TEST(Deadlock, ARecordHasTheInnermostLocksThatFit) {
  AncestorLocks held = AncestorLocks::parse("o1:1 outer\no2:1 middle\no3:1 inner");
  EXPECT_EQ(held.text_of_inner(30), "o2:1 middle\no3:1 inner");
  EXPECT_EQ(held.text_of_inner(5), "");
  EXPECT_EQ(held.text(), "o1:1 outer\no2:1 middle\no3:1 inner");
}

}  // namespace
}  // namespace rlock::lock
