// SPDX-License-Identifier: MIT
#include "redis/reply.h"

#include <gtest/gtest.h>

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

TEST(ReplyReader, KeepsRepliesApart) {
  ReplyReader reader;
  reader.feed(":1\r\n:2\r\n");
  EXPECT_EQ((**reader.next()).as_number(), 1);
  EXPECT_EQ((**reader.next()).as_number(), 2);
  EXPECT_FALSE(*reader.next());
}

TEST(ReplyReader, KnowsWhetherBytesAreLeft) {
  ReplyReader reader;
  EXPECT_TRUE(reader.empty());
  reader.feed("*2\r\n:1\r\n:2\r\n:3\r\n*1\r\n");
  EXPECT_FALSE(reader.empty());
  ASSERT_TRUE(*reader.next());
  EXPECT_FALSE(reader.empty()) << "a whole reply";
  ASSERT_TRUE(*reader.next());
  EXPECT_FALSE(reader.empty()) << "part of a reply";
  ASSERT_FALSE(*reader.next());
  EXPECT_FALSE(reader.empty()) << "part of a reply that has been looked at";
  reader.feed(":4\r\n");
  ASSERT_TRUE(*reader.next());
  EXPECT_TRUE(reader.empty());
}

TEST(ReplyReader, RefusesWhatIsNotRedis) {
  for (const char* bytes : {"HTTP/1.1 400 Bad Request\r\n\r\n", "220 mail ready\r\n", "\x16\x03\x01\x02"}) {
    const auto reply = read_all(bytes);
    ASSERT_FALSE(reply) << bytes;
    EXPECT_EQ(reply.error().code, Error::Code::protocol);
  }
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
  EXPECT_FALSE(text("12x"));
  EXPECT_FALSE(text(""));
  EXPECT_FALSE(text("99999999999999999999"));
  EXPECT_FALSE(Reply{}.as_number());
}

TEST(FormatCommand, KeepsEveryByte) {
  EXPECT_EQ(format_command({"SET", std::string_view("a\0\r\n", 4), ""}),
            std::string("*3\r\n$3\r\nSET\r\n$4\r\na\0\r\n\r\n$0\r\n\r\n", 29));
}

}  // namespace
}  // namespace rlock::redis
