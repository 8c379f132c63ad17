// SPDX-License-Identifier: MIT
#include "redis/msgpack.h"

#include <gtest/gtest.h>

namespace rlock::redis {
namespace {

TEST(MessagePack, WhatIsPackedIsUnpacked) {
  const std::string longest(70000, 'x'), binary("a\0\xff", 3);
  PackedMap inner, map;
  inner.add("place", "1").flag("replace", false);
  map.add("text", longest).add("", binary).add("negative", -5LL).add("large", 1LL << 53).flag("set", true);
  map.add("list", std::vector<std::string>{"a", "", longest}).add("map", inner).add("none", PackedMap());
  const auto read = unpacked(map.bytes());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->elements.size(), 16U);
  EXPECT_EQ(read->value_of("text").text, longest);
  EXPECT_EQ(read->value_of("").text, binary);
  EXPECT_EQ(read->value_of("negative").integer, -5);
  EXPECT_EQ(read->value_of("large").integer, 1LL << 53);
  EXPECT_EQ(read->value_of("set").integer, 1);
  EXPECT_EQ(read->value_of("list").at(2).text, longest);
  EXPECT_EQ(read->value_of("map").elements.size(), 2U);
  EXPECT_EQ(read->value_of("map").value_of("place").text, "1");
  EXPECT_TRUE(read->value_of("absent").is(Reply::Kind::nil));
}

TEST(MessagePack, NumbersOfAllSizes) {
  const auto number = [](std::string_view bytes) { return unpacked(bytes).value().integer; };
  using namespace std::literals;
  EXPECT_EQ(number("\x7f"sv), 127);
  EXPECT_EQ(number("\xe0"sv), -32);
  EXPECT_EQ(number("\xcc\xff"sv), 255);
  EXPECT_EQ(number("\xcd\1\0"sv), 256);
  EXPECT_EQ(number("\xce\xff\xff\xff\xff"sv), 4294967295);
  EXPECT_EQ(number("\xd0\x80"sv), -128);
  EXPECT_EQ(number("\xd1\x80\0"sv), -32768);
  EXPECT_EQ(number("\xd2\x80\0\0\0"sv), -2147483648);
  EXPECT_EQ(number("\xd3\xff\xff\xff\xff\xff\xff\xff\xff"sv), -1);
  EXPECT_EQ(number("\xcb\x40\x45\x40\0\0\0\0\0"sv), 42) << "42.5";
  EXPECT_EQ(number("\xca\xc2\x28\0\0"sv), -42);
  EXPECT_EQ(number("\xcb\x7f\xf0\0\0\0\0\0\0"sv), 1LL << 53) << "infinity";
}

// Each beginning of a value is malformed, and so is what does not end where the value does.
TEST(MessagePack, MalformedBytesAreAnError) {
  PackedMap map;
  map.add("list", std::vector<std::string>{"a", "b"}).add("number", 7LL).add("map", PackedMap().add("a", "b"));
  const std::string whole(map.bytes());
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_FALSE(unpacked(whole.substr(0, size))) << size;
  EXPECT_FALSE(unpacked(whole + "x"));
  EXPECT_FALSE(unpacked("\xc1"));
  EXPECT_FALSE(unpacked("\xdf\xff\xff\xff\xff")) << "a map of four thousand million keys";
  EXPECT_FALSE(unpacked("\xdb\xff\xff\xff\xff"));
  EXPECT_TRUE(unpacked(std::string(8, '\x91') + '\1'));
  EXPECT_FALSE(unpacked(std::string(9, '\x91') + '\1')) << "too deep";
}

}  // namespace
}  // namespace rlock::redis
