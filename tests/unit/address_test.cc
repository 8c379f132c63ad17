// SPDX-License-Identifier: MIT
#include "redis/address.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace rlock::redis {
namespace {

TEST(Address, ReadsServersAndSentinels) {
  const auto address = *parse_address("redis+sentinel://al%40ice:s%2Cecret@a,b:7000,[::1],[::2]:7001/my%2Fmaster/3");
  EXPECT_EQ(address.kind, Address::Kind::sentinel);
  const std::vector<Host> expected = {{"a", 26379}, {"b", 7000}, {"::1", 26379}, {"::2", 7001}};
  EXPECT_EQ(address.sentinels, expected);
  EXPECT_EQ(address.master, "my/master");
  EXPECT_EQ(address.server.user, "al@ice");
  EXPECT_EQ(address.server.password->text(), "s,ecret");
  EXPECT_EQ(address.server.db, 3);
  EXPECT_FALSE(address.server.tls);
  EXPECT_TRUE(parse_address("rediss+sentinel://a/m")->server.tls);
  EXPECT_EQ(parse_address("redis://h:1/2")->kind, Address::Kind::server);
  EXPECT_EQ(parse_address("redis://h:1/2")->server.port, 1);
  EXPECT_EQ(parse_address("unix:///s")->display(), "unix:///s");
}

TEST(Address, ReadsBackWhatItShows) {
  for (const char* url : {"redis+sentinel://a:26379/m", "rediss+sentinel://u@a:1,[::1]:2/m%2Fn/3", "redis://h:1/2",
                          "redis+sentinel://%2C:26379/%40"}) {
    EXPECT_EQ(parse_address(url)->url(), url);
  }
}

TEST(Address, NeverShowsALoneWord) {
  EXPECT_EQ(parse_address("redis+cluster://hunter2@a:1,b/3")->display(), "redis+cluster://***@a:1,b:6379/3");
  EXPECT_EQ(parse_address("rediss+sentinel://hunter2@a:1/m")->display(), "rediss+sentinel://***@a:1/m");
  EXPECT_EQ(parse_address("redis+cluster://hunter2@a:1,hunter2@b:1")->display(), "redis+cluster://***@b:1");
  EXPECT_EQ(parse_address("redis+sentinel://hunter2@a,hunter2@b/m")->display(), "redis+sentinel://***@b:26379/m");
}

TEST(Address, RefusesTheRestAndShowsNoPassword) {
  for (const std::string& url :
       split("redis+sentinel:// redis+sentinel://a redis+sentinel://a/ redis+sentinel:///m "
             "redis+sentinel://a,/m redis+sentinel://,a/m redis+sentinel://u:hunter2@a,b:x/m "
             "redis+sentinel://u:hunter2@a/m/x redis+sentinel://u:hunter2@a/m/1/2 "
             "redis+sentinel://a/m?x=1 redis+sentinel://a,redis://b/m "
             "redis+sentinel://a:1,redis://b:2/m redis+sentinel://a/%00 redis+sentinel://a/%0a "
             "redis://u:hunter2@a,b redis+sentinel://hunter2@a redis+sentinel://hunter2%@a/m "
             "redis+cluster://hunter2@a, redis+cluster://hunter2@a:0 redis+cluster:/hunter2@a "
             "redis+clusters://hunter2@a redis+sentinels://a/m",
             ' ')) {
    const auto address = parse_address(url);
    ASSERT_FALSE(address) << url;
    EXPECT_EQ(address.error().code, Error::Code::usage) << url;
    EXPECT_EQ(address.error().message.find("hunter2"), std::string::npos) << address.error().message;
  }
}

TEST(Address, SeveralAreSeparatedByBlanks) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split_addresses("redis://a"), Parts{"redis://a"});
  EXPECT_EQ(split_addresses(""), Parts{""});
  EXPECT_EQ(split_addresses("redis://a  unix:///b local: rediss://c"),
            (Parts{"redis://a", "unix:///b", "local:", "rediss://c"}));
  EXPECT_EQ(split_addresses("unix:///with a blank redis://u:p w@b"),
            (Parts{"unix:///with a blank", "redis://u:p w@b"}));
  EXPECT_EQ(split_addresses(" redis://a\r\nredis://b\n"), (Parts{"redis://a", "redis://b"}));
  EXPECT_EQ(split_addresses(" \n"), Parts{""});
  EXPECT_EQ(split_addresses("redis://a http://b REDIS://c"), (Parts{"redis://a", "http://b", "REDIS://c"}));
}

}  // namespace
}  // namespace rlock::redis
