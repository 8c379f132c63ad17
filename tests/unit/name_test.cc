// SPDX-License-Identifier: MIT
#include "verbs/name.h"

#include <gtest/gtest.h>

#include <set>

#include "verbs/mode.h"

namespace rlock::lock {
namespace {

TEST(LockName, MakesRedissonsKeysAndIsFoundFromItsHolderKey) {
  const auto plain = *LockName::parse("myLock");
  EXPECT_EQ(plain.text(), "myLock");
  EXPECT_EQ(plain.companion(lua::kReleases), "redisson_lock__channel:{myLock}");
  EXPECT_EQ(plain.token_key(), "redisson_lock_token:{myLock}");
  EXPECT_EQ(plain.holder_key(), "rlock:holder:{myLock}");
  EXPECT_EQ(LockName::parse("{x}y")->companion(lua::kReleases), "redisson_lock__channel:{x}y");
  for (const char* text : {"a", "{x}y", "x{y}z", "a b"}) {
    const auto name = *LockName::parse(text);
    ASSERT_TRUE(LockName::of_companion(lua::kHolder, name.holder_key())) << text;
    EXPECT_EQ(LockName::of_companion(lua::kHolder, name.holder_key())->text(), text);
  }
  for (const char* key : {"", "rlock:holder", "rlock:holder:", "rlock:holder:{}", "other:{a}", "rlock:holder:{a"}) {
    EXPECT_FALSE(LockName::of_companion(lua::kHolder, key)) << key;
  }
}

TEST(LockName, AcceptsNamesThatKeepTheirKeysInOneSlotAndRefusesTheRest) {
  for (const char* name : {"a", "a b", "größe", "{x}y", "x{y}z{w}", "a}b{c}", "a:b", "-x", "\xff"}) {
    EXPECT_TRUE(LockName::parse(name)) << name;
  }
  EXPECT_TRUE(LockName::parse(std::string(512, 'n')));
  using namespace std::string_literals;
  for (const std::string& name :
       {""s, std::string(513, 'n'), "a\nb"s, "a\0b"s, "\x7f"s, "a{b"s, "a}b"s, "{}x"s, "{x}"s, "{}"s, "}{"s}) {
    const auto parsed = LockName::parse(name);
    ASSERT_FALSE(parsed) << name;
    EXPECT_EQ(parsed.error().code, Error::Code::usage);
    EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  }
}

TEST(LockName, IsNoCompanionOfAnotherLock) {
  std::vector<std::string> names = {"x{y}z:timeout", "{x}y:ID:rwlock_timeout:7"};
  for (const char* text : {"x", "a{b}", "{a}b:c"}) {
    const auto name = *LockName::parse(text);
    for (const Companion& one : lua::kCompanions) {
      names.push_back(name.companion(one));
      names.push_back(name.companion(one) + ":ID");
      names.push_back(std::string(one.word) + ":" + text);
    }
    for (std::string key : {name.permits_key(), name.reader_key("ID:1"), name.due_key(), name.entry_key("ID")}) {
      names.push_back(std::move(key));
    }
  }
  for (const std::string& name : names) EXPECT_FALSE(LockName::parse(name)) << name;
  for (const char* name : {"db:timeout", "a:rwlock_timeout:1", "rlock", "rlock:pool", "redisson_lock_queues:{x}"}) {
    EXPECT_TRUE(LockName::parse(name)) << name;
  }
}

TEST(OwnerId, IsFreshEachTimeAndLooksLikeRedissonsAndSaysHowManySlotsAreTaken) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(OwnerId::fresh().text());
  EXPECT_EQ(seen.size(), 1000u);
  const std::string id = OwnerId::fresh().text();
  ASSERT_GT(id.size(), 37u);
  EXPECT_EQ(id[36], ':');
  EXPECT_EQ(id[14], '4') << "UUID version";
  EXPECT_NE(std::string("89ab").find(id[19]), std::string::npos) << "UUID variant";

  // How many slots are taken.
  const std::string many = OwnerId::fresh_for_slots(64).text();
  EXPECT_EQ(many[14], '8');
  EXPECT_EQ(many.substr(32, 5), "0040:");
  EXPECT_EQ(OwnerId::fresh_for_slots(1).text()[14], '4');
  EXPECT_NE(OwnerId::fresh_for_slots(2), OwnerId::fresh_for_slots(2));
  for (const int taken : {1, 2, 64}) EXPECT_EQ(OwnerId::fresh_for_slots(taken).slots(), taken);
  for (const char* other : {"00000000-0000-8000-8000-00000000ffff:1", "x"})
    EXPECT_EQ(OwnerId::as_stored(other).slots(), 1);
}

TEST(AncestorLocks, CarriesNamesWithBlanksAndTheInnermostCountsAndNonsenseDoesNot) {
  const auto a = *LockName::parse("a"), b = *LockName::parse("b c");
  const auto first = OwnerId::fresh(), second = OwnerId::fresh();
  const auto both =
      AncestorLocks::parse(AncestorLocks::parse(AncestorLocks().with(a, first).text()).with(b, second).text());
  EXPECT_EQ(both.owner_of(a), first);
  EXPECT_EQ(both.owner_of(b), second);
  EXPECT_FALSE(both.owner_of(*LockName::parse("c")));

  const std::string id = second.text();
  const auto held = AncestorLocks::parse("no-blank\n\n  \n" + id + " \n" + id + " a\n" + std::string(600, 'x') + " b");
  EXPECT_EQ(held.owner_of(a), second);
  EXPECT_FALSE(held.owner_of(*LockName::parse("b")));
  EXPECT_EQ(AncestorLocks::parse(first.text() + " a\n" + id + " a").owner_of(a), second);
  // An application's hash may have any field.
  EXPECT_FALSE(AncestorLocks::parse("theme a").owner_of(a));
}

TEST(SlotNumbers, AreReadAndNamedButUntrusted) {
  const Slots slots = Slots::read("0 2", {"gpu0", "gpu1", "gpu2"});
  EXPECT_EQ(slots.number_text(), "0 2");
  EXPECT_EQ(slots.resource_text(), "gpu0 gpu2");
  EXPECT_EQ(Slots::read("7", {}).number_text(), "7");
  EXPECT_EQ(Slots::read("7", {}).resource_text(), "");
  for (const std::string text : {"", " ", "x", "-1", "1  2", "1 ", "1000001", "99999999999999999999", "1\n2"}) {
    EXPECT_TRUE(Slots::read(text, {"a", "b"}).numbers.empty()) << text;
  }
  std::string many;
  for (int i = 0; i <= kMostTaken; ++i) many += (i == 0 ? "" : " ") + std::to_string(i);
  EXPECT_TRUE(Slots::read(many, {}).numbers.empty());
  EXPECT_TRUE(Slots::read("0 5", {"a", "b"}).resources.empty()) << "one of them has no name";
}

}  // namespace
}  // namespace rlock::lock
