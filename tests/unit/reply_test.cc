// SPDX-License-Identifier: MIT
#include "redis/reply.h"

#include <gtest/gtest.h>

#include "redis/msgpack.h"
#include "redis/server_error.h"
#include "redis/server_info.h"

namespace rlock::redis {
namespace {

Result<std::optional<Reply>> read_all(std::string_view bytes) {
  ReplyReader reader;
  reader.feed(bytes);
  return reader.next();
}

TEST(ReplyReader, ReadsEveryKind) {
  const auto reply = read_all("*6\r\n$2\r\nhi\r\n:-7\r\n$-1\r\n+OK\r\n-ERR x\r\n*1\r\n:1\r\n");
  ASSERT_TRUE(reply && *reply);
  EXPECT_EQ((*reply)->at(0).as_text(), "hi");
  EXPECT_EQ((*reply)->at(1).as_number(), -7);
  EXPECT_TRUE((*reply)->at(2).is(Reply::Kind::nil));
  EXPECT_EQ((*reply)->at(3).as_text(), "OK");
  EXPECT_TRUE((*reply)->at(4).is(Reply::Kind::error));
  EXPECT_EQ((*reply)->at(5).at(0).as_number(), 1);
  EXPECT_TRUE((*reply)->at(6).is(Reply::Kind::nil)) << "beyond the end";
  EXPECT_TRUE((*reply)->at(0).at(0).is(Reply::Kind::nil)) << "not an array";
}

TEST(ReplyReader, WaitsForTheRestAtEveryByte) {
  const std::string_view bytes = "*2\r\n$3\r\nabc\r\n:12\r\n";
  ReplyReader reader;
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    reader.feed(bytes.substr(i, 1));
    const auto reply = reader.next();
    ASSERT_TRUE(reply) << i;
    ASSERT_FALSE(*reply) << i;
  }
  reader.feed(bytes.substr(bytes.size() - 1));
  EXPECT_EQ((**reader.next()).at(1).as_number(), 12);
}

TEST(ReplyReader, KeepsRepliesApartAndKnowsWhetherBytesAreLeft) {
  ReplyReader reader;
  EXPECT_TRUE(reader.empty());
  reader.feed("*2\r\n:1\r\n:2\r\n:3\r\n*1\r\n");
  EXPECT_FALSE(reader.empty());
  EXPECT_EQ((**reader.next()).at(1).as_number(), 2);
  EXPECT_FALSE(reader.empty()) << "a whole reply";
  EXPECT_EQ((**reader.next()).as_number(), 3);
  EXPECT_FALSE(reader.empty()) << "part of a reply";
  ASSERT_FALSE(*reader.next());
  EXPECT_FALSE(reader.empty()) << "part of a reply that has been looked at";
  reader.feed(":4\r\n");
  ASSERT_TRUE(*reader.next());
  EXPECT_TRUE(reader.empty());
}

// hiredis 0.14 does not know these, and 1.x reads them. Both must refuse what was not asked for, even inside of
// an array.
TEST(ReplyReader, RefusesTheTypesOfResp3) {
  for (const char* bytes : {",1.5\r\n", ",inf\r\n", "#t\r\n", "#f\r\n",
                            "(3492890328409238509324850943850943825024385\r\n", "=7\r\ntxt:abc\r\n", "~1\r\n:1\r\n",
                            "%1\r\n:1\r\n:2\r\n", ">1\r\n+message\r\n", "|1\r\n+k\r\n:1\r\n", "_\r\n"}) {
    for (const std::string& whole : {std::string(bytes), "*2\r\n:1\r\n" + std::string(bytes)}) {
      const auto reply = read_all(whole);
      ASSERT_FALSE(reply) << whole;
      EXPECT_EQ(reply.error().code, Error::Code::protocol) << whole;
    }
  }
  for (const char* not_redis : {"HTTP/1.1 400 Bad Request\r\n\r\n", "220 mail ready\r\n", "\x16\x03\x01\x02"}) {
    EXPECT_EQ(read_all(not_redis).error().code, Error::Code::protocol) << not_redis;
  }
}

TEST(ReplyReader, HasLimits) {
  EXPECT_FALSE(read_all("*2147483647\r\n")) << "room for so many elements is not reserved";
  EXPECT_FALSE(read_all("*4097\r\n"));
  std::string deep;
  for (int i = 0; i < 9; ++i) deep += "*1\r\n";
  EXPECT_FALSE(read_all(deep + ":1\r\n"));

  ReplyReader reader;
  reader.feed("$8000000\r\n");
  bool refused = false;
  for (int i = 0; i < 160 && !refused; ++i) {
    reader.feed(std::string(32 * 1024, 'x'));
    refused = !reader.next();
  }
  EXPECT_TRUE(refused) << "a reply of 4 MiB and more";
}

TEST(Reply, NumbersAreWhole) {
  const auto text = [](const char* t) { return Reply{.kind = Reply::Kind::string, .text = t}.as_number(); };
  EXPECT_EQ(text("12"), 12);
  for (const char* other : {"12x", "", "99999999999999999999"}) EXPECT_FALSE(text(other)) << other;
  EXPECT_FALSE(Reply{}.as_number());
  EXPECT_FALSE(time_of(**read_all("*2\r\n:1\r\n:9223372036854775807\r\n")));
}

TEST(FormatCommand, KeepsEveryByte) {
  EXPECT_EQ(format_command({"SET", std::string_view("a\0\r\n", 4), ""}),
            std::string("*3\r\n$3\r\nSET\r\n$4\r\na\0\r\n\r\n$0\r\n\r\n", 29));
}

using enum Error::Code;

// The texts are replies of Redis 6.2.16, 7.0.15, 7.2.6, 7.4.1 and Valkey.
TEST(ServerError, KnowsTheFirstWordAndTheTextAfterErr) {
  constexpr std::pair<std::string_view, Error::Code> kErrors[] = {
      {"NOAUTH Authentication required.", denied},
      {"WRONGPASS invalid username-password pair or user is disabled.", denied},
      {"NOPERM this user has no permissions to run the 'eval' command", denied},
      {"WRONGTYPE Operation against a key holding the wrong kind of value", wrong_kind},
      {"LOADING Redis is loading the dataset in memory", unavailable},
      {"BUSY Valkey is busy running a script.", unavailable},
      {"OOM command not allowed when used memory > 'maxmemory'.", unavailable},
      {"READONLY You can't write against a read only replica.", unavailable},
      {"MISCONF Redis is configured to save RDB snapshots", unavailable},
      {"ERR The user executing the script can't run this command or subcommand script: x", denied},
      {"ERR ACL failure in script: User r has no permissions to run the 'pexpire' command", denied},
      {"ERR The user executing the script can't publish to the channel mentioned in the command", denied},
      {"ERR AUTH <password> called without any password configured for the default user.", denied},
      {"ERR DB index is out of range", config},
      {"ERR max number of clients reached", unavailable},
      {"ERR Error running script (call to f_0): @user_script:1: WRONGTYPE Operation against", wrong_kind},
      {"ERR Error running script (call to f_0): @user_script: 1: -READONLY You can't write", unavailable},
      {"ERR READONLY You can't write to a replica, which forgets locks when it …", unavailable},
      {"ERR Protocol error: unauthenticated multibulk length", denied},
      {"ERR unknown command 'EVAL', with args beginning with: 'return' ", config},
      {"ERR unknown command `EVAL`, with args beginning with: `return`, ", config},
      {"ERR unknown command 'EVALSHA'", protocol},
      {"ERR wrong number of arguments, OOM or READONLY", protocol},
      {"NOAUTHX what", protocol},
      {"", protocol},
  };
  for (const auto& [text, code] : kErrors) EXPECT_EQ(server_error(text).code, code) << text;
}

TEST(ServerError, IsEscapedAndSaysWhatToDoAboutProtectedModeAndWhetherACommandIsWithheld) {
  for (const char* withheld : {"NOPERM this user has no permissions to run the 'info' command",
                               "ERR unknown command 'CONFIG', with args beginning with: 'GET' "}) {
    EXPECT_TRUE(is_withheld(server_error(withheld))) << withheld;
  }
  for (const char* other : {"NOAUTH Authentication required.", "LOADING Redis is loading the dataset in memory"}) {
    EXPECT_FALSE(is_withheld(server_error(other))) << other;
  }
  EXPECT_FALSE(server_error("ERR \x1b[2J").message.contains('\x1b'));
  const auto error = server_error("DENIED Redis is running in protected mode because protected mode is enabled and …");
  EXPECT_TRUE(error.message.contains("set one there (requirepass)")) << error.message;
}

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
  // The last three are 42.5, -42.0 and infinity.
  const std::pair<std::string_view, long long> kNumbers[] = {{"\x7f"sv, 127},
                                                             {"\xe0"sv, -32},
                                                             {"\xcc\xff"sv, 255},
                                                             {"\xcd\1\0"sv, 256},
                                                             {"\xce\xff\xff\xff\xff"sv, 4294967295},
                                                             {"\xd0\x80"sv, -128},
                                                             {"\xd1\x80\0"sv, -32768},
                                                             {"\xd2\x80\0\0\0"sv, -2147483648},
                                                             {"\xd3\xff\xff\xff\xff\xff\xff\xff\xff"sv, -1},
                                                             {"\xcb\x40\x45\x40\0\0\0\0\0"sv, 42},
                                                             {"\xca\xc2\x28\0\0"sv, -42},
                                                             {"\xcb\x7f\xf0\0\0\0\0\0\0"sv, 1LL << 53}};
  for (const auto& [bytes, value] : kNumbers) EXPECT_EQ(number(bytes), value);
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
