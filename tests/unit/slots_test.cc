// SPDX-License-Identifier: MIT

#include <gtest/gtest.h>

#include "base/text.h"
#include "verbs/mode.h"

namespace rlock::lock {
namespace {

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

TEST(SlotNumbers, OwnerIdsSayHowManyAreTaken) {
  EXPECT_EQ(OwnerId::fresh_for_slots(1).text()[14], '4');
  const std::string text = OwnerId::fresh_for_slots(64).text();
  EXPECT_EQ(text[14], '8');
  EXPECT_EQ(text.substr(32, 5), "0040:");
  EXPECT_NE(OwnerId::fresh_for_slots(2), OwnerId::fresh_for_slots(2));
  for (const int taken : {1, 2, 64}) EXPECT_EQ(OwnerId::fresh_for_slots(taken).slots(), taken);
  EXPECT_EQ(OwnerId::as_stored("00000000-0000-8000-8000-00000000ffff:1").slots(), 1);
  EXPECT_EQ(OwnerId::as_stored("x").slots(), 1);
}

TEST(Split, IsTheOppositeOfJoined) {
  EXPECT_TRUE(split("", ',').empty());
  EXPECT_EQ(split("a,,b,", ','), (std::vector<std::string>{"a", "", "b", ""}));
  EXPECT_EQ(joined({"a", "", "b"}, ", "), "a, , b");
  EXPECT_EQ(joined({}, ","), "");
}

}  // namespace
}  // namespace rlock::lock
