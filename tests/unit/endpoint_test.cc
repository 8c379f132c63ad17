// SPDX-License-Identifier: MIT
#include "redis/address.h"

#include <gtest/gtest.h>

#include "base/text.h"

#include "redis/endpoint.h"
#include "redis/slot.h"

namespace rlock::redis {
namespace {

Result<Endpoint> parse_endpoint(std::string_view url) { return RLOCK_TRY(parse_address(url)).server; }

using namespace std::string_view_literals;

TEST(Endpoint, ReadsNetworkAddresses) {
  constexpr struct {
    const char *url, *host;
    int port = 6379, db = 0;
    const char *user = "", *password = nullptr;
  } kUrls[] = {
      {"redis://al%40ice:s%3Acret@cache.example:7000/3", "cache.example", 7000, 3, "al@ice", "s:cret"},
      {"rediss://u:p@cache.example:7000/3", "cache.example", 7000, 3, "u", "p"},
      {"redis://", "127.0.0.1"},
      {"redis://:6380", "127.0.0.1", 6380},
      {"redis://h/", "h"},
      {"redis://bob@h", "h", 6379, 0, "bob"},
      {"redis://:pw@h", "h", 6379, 0, "", "pw"},
      {"redis://:p@ss@host", "host", 6379, 0, "", "p@ss"},
      {"redis://:p/ss@host", "host", 6379, 0, "", "p/ss"},
      {"redis://[::1]:6380/1", "::1", 6380, 1},
      {"redis://[fe80::1]", "fe80::1"},
      {"redis://[fe80::1%25eth0]:6380/1", "fe80::1%eth0", 6380, 1},  // RFC 6874: the % in front of a zone
  };
  for (const auto& one : kUrls) {
    const auto endpoint = *parse_endpoint(one.url);
    EXPECT_EQ(endpoint.host, one.host) << one.url;
    EXPECT_EQ(endpoint.port, one.port) << one.url;
    EXPECT_EQ(endpoint.db, one.db) << one.url;
    EXPECT_EQ(endpoint.user, one.user) << one.url;
    EXPECT_EQ(endpoint.tls.has_value(), std::string_view(one.url).starts_with("rediss:")) << one.url;
    ASSERT_EQ(endpoint.password.has_value(), one.password != nullptr) << one.url;
    if (one.password) {
      EXPECT_EQ(endpoint.password->text(), one.password);
    }
    EXPECT_EQ(parse_endpoint(endpoint.display())->host, endpoint.host) << one.url;
  }
  for (const char* url : {"redis://[::1]:6380/1", "redis://[fe80::1%25eth0]:6380/1"}) {
    EXPECT_EQ(parse_endpoint(url)->display(), url);
  }
  EXPECT_EQ(parse_endpoint("rediss://u:p@cache.example:7000/3")->display(), "rediss://u@cache.example:7000/3");
}

TEST(Endpoint, ReadsSockets) {
  const auto endpoint = *parse_endpoint("unix://u:p@/run/a%20b.sock?db=4");
  EXPECT_EQ(endpoint.kind, Endpoint::Kind::unix_socket);
  EXPECT_EQ(endpoint.path, "/run/a b.sock");
  EXPECT_EQ(endpoint.db, 4);
  EXPECT_EQ(endpoint.password->text(), "p");
  EXPECT_EQ(parse_endpoint("local:")->path, "");
  EXPECT_EQ(parse_endpoint("local:/srv/x")->path, "/srv/x");
}

// The address that nested runs get in RLOCK_URL.
TEST(Endpoint, ReadsBackWhatItShowsAndItsUrl) {
  for (const char* host :
       {"a%b", "h?x", "h#x", "h[x", "h]x", "fe80::1%e0]x", "::1%[?#@/", "h/x", "h@x", "h:x:y", "\xff"}) {
    const Endpoint endpoint{.host = host, .user = "u:/?#[]@%"};
    const auto again = parse_endpoint(endpoint.display());
    ASSERT_TRUE(again) << endpoint.display();
    EXPECT_EQ(again->host, host);
    EXPECT_EQ(again->user, endpoint.user);
  }
  for (const char* url :
       {"redis://h:1", "redis://al%40ice@h:1/2", "unix:///a%20b?db=1", "local:", "local:/d%25", "redis://[::1]:6379"}) {
    const auto endpoint = *parse_endpoint(url);
    const auto again = *parse_endpoint(endpoint.url());
    EXPECT_EQ(again.host, endpoint.host);
    EXPECT_EQ(again.path, endpoint.path);
    EXPECT_EQ(again.user, endpoint.user);
    EXPECT_EQ(again.db, endpoint.db);
  }
}

// Nor a lone word, which redis-cli takes for a password.
TEST(Endpoint, NeverShowsAPassword) {
  for (const char* url : {"redis://u:hunter2@h:1", "unix://u:hunter2@/s", "redis://:hunter2@h", "redis://hunter%32@h",
                          "rediss://hunter%3A2@h", "redis://hunter2%3ax@h", "redis://hunter2@x@h",
                          "redis://hunter2/x@h", "redis://hunter2@a:1@b", "redis://hunter2@a,redis://hunter2@b"}) {
    const auto endpoint = parse_endpoint(url);
    ASSERT_TRUE(endpoint) << url;
    EXPECT_FALSE(endpoint->display().contains("hunter")) << endpoint->display();
    EXPECT_EQ(parse_endpoint(endpoint->url())->user, endpoint->user) << url;
  }
  EXPECT_EQ(parse_endpoint("redis://hunter2@h:1/2")->display(), "redis://***@h:1/2");
  EXPECT_EQ(parse_endpoint("unix://hunter2@/s")->display(), "unix://***@/s");
  EXPECT_EQ(parse_endpoint("redis://u:@h:1")->display(), "redis://u@h:1");
}

TEST(SecretIn, SecretsAndPasswordsAreFound) {
  constexpr struct {
    const char *text, *secret, *password;
  } kTexts[] = {
      {"redis://u:pw@h", "pw", "pw"}, {"--url=redis://:p@w@h", "p@w", "p@w"},
      {"redis://pw@h", "pw", ""},     {"unix://pw@/s", "pw", ""},
      {"redis://h:6379", "", ""},     {"just a word", "", ""},
  };
  for (const auto& one : kTexts) {
    EXPECT_EQ(secret_in(one.text), one.secret) << one.text;
    EXPECT_EQ(password_in(one.text), one.password) << one.text;
  }
  EXPECT_EQ(secret_in("redis+cluster://pw@a:1,pw@b:1"), "pw@a:1,pw");
}

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

TEST(Address, ReadsBackWhatItShowsWhichIsNoLoneWord) {
  for (const char* url : {"redis+sentinel://a:26379/m", "rediss+sentinel://u@a:1,[::1]:2/m%2Fn/3", "redis://h:1/2",
                          "redis+sentinel://%2C:26379/%40"}) {
    EXPECT_EQ(parse_address(url)->url(), url);
  }
  EXPECT_EQ(parse_address("redis+cluster://hunter2@a:1,b/3")->display(), "redis+cluster://***@a:1,b:6379/3");
  EXPECT_EQ(parse_address("rediss+sentinel://hunter2@a:1/m")->display(), "rediss+sentinel://***@a:1/m");
  EXPECT_EQ(parse_address("redis+cluster://hunter2@a:1,hunter2@b:1")->display(), "redis+cluster://***@b:1");
  EXPECT_EQ(parse_address("redis+sentinel://hunter2@a,hunter2@b/m")->display(), "redis+sentinel://***@b:26379/m");
}

TEST(Address, RefusesTheRestAndShowsNoPassword) {
  for (const std::string& url : split(
           "|host|host:6379|http://h|REDIS://h|redis:/h|redis://h:0|redis://h:70000|redis://h:|redis://h:x|"
           "redis://h:1:2|redis://::1|redis://[::1|redis://[::1]x|redis://[h]|redis://h/x|redis://h/-1|redis://h/1/2|"
           "redis://h?x=1|redis://h#f|redis://%zz|redis://%0|redis://%00|unix://run/x|unix://|unix:///x?db=|"
           "unix:///x?q=1|local:x|rediss://h/x|redisss://h|redis://a b|"
           "redis://u:hunter2@h:0|redis://:hunter2@h:0|reds://:hunter2@h|redis://u:hunter2@h/x|reds://"
           "u:hunter2@h|u:hunter2@h|redis://u:hunter2%@h|"
           "unix://u:hunter2@x|redis://u:hunter2@h?x|redis://hunter2@h:0|redis://hunter2@h/x|reds://hunter2@h|"
           "hunter2@h|hunter2@h:6379|redis://hunter2%@h|redis://hunter2%00@h|unix://hunter2@x|unix:hunter2@/s|"
           "redis://hunter2@h?x|redis:hunter2@h|redis:/hunter2@h|redis//hunter2@h:1|local:hunter2@h|/hunter2@h|"
           "redis://hunter2@a,b|redis://hunter2@a:1,redis://hunter2@b|redis://hunter2@[h]|redis://u:hunter2@a,b|"
           "redis+sentinel://|redis+sentinel://a|redis+sentinel://a/|redis+sentinel:///m|redis+sentinel://a,/m|"
           "redis+sentinel://,a/m|redis+sentinel://u:hunter2@a,b:x/m|redis+sentinel://u:hunter2@a/m/x|"
           "redis+sentinel://u:hunter2@a/m/1/2|redis+sentinel://a/m?x=1|redis+sentinel://a,redis://b/m|"
           "redis+sentinel://a:1,redis://b:2/m|redis+sentinel://a/%00|redis+sentinel://a/%0a|"
           "redis+sentinel://hunter2@a|redis+sentinel://hunter2%@a/m|redis+sentinels://a/m|"
           "redis+cluster://hunter2@a,|redis+cluster://hunter2@a:0|redis+cluster:/hunter2@a|redis+clusters://hunter2@a",
           '|')) {
    const auto address = parse_address(url);
    ASSERT_FALSE(address) << url;
    EXPECT_EQ(address.error().code, Error::Code::usage) << url;
    EXPECT_FALSE(address.error().message.contains("hunter")) << address.error().message;
  }
  for (const std::string_view url : {"redis://a\0b"sv, "unix:///a\0b"sv, "local:/a\0b"sv, "redis://u:p\0q@h"sv}) {
    EXPECT_FALSE(parse_address(url)) << url;
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

// How many of a hundred hosts get the password, one after another.
int admitted(Audience& audience) {
  static int port = 0;
  int count = 0;
  for (int i = 0; i < 100; ++i) {
    const Host host{"h", ++port};
    if (!audience.admits(host)) continue;
    audience.add(host);
    ++count;
  }
  return count;
}

TEST(Audience, AsManyAsThereAreServersOrAnExchangeNeedsAndStartsAgainWhenOneServes) {
  Audience audience({{"seed", 1}}, 1);
  EXPECT_EQ(admitted(audience), 0);
  EXPECT_TRUE(audience.admits({"seed", 1}));
  audience.expect(4);
  EXPECT_EQ(admitted(audience), 3);
  EXPECT_EQ(admitted(audience), 0);
  audience.served();
  EXPECT_EQ(admitted(audience), 3);

  Audience of_many({}, 1000);
  EXPECT_EQ(admitted(of_many), 1 + kMostRedirections);
  of_many.begin(20);
  EXPECT_EQ(admitted(of_many), 19);

  Audience of_one({}, 1);
  of_one.add({"a", 1});
  EXPECT_TRUE(of_one.admits({"a", 1}));
  EXPECT_FALSE(of_one.admits({"a", 2}));
}

TEST(Slot, IsThatOfRedisForNamesTagsAndCommands) {
  // The values are those of CLUSTER KEYSLOT.
  const std::pair<const char*, int> kSlots[] = {{"123456789", 12739}, {"foo", 12182}, {"bar", 5061}, {"", 0}};
  for (const auto& [name, slot] : kSlots) EXPECT_EQ(slot_of(name), slot) << name;
  for (const char* name : {"{foo}", "rlock:queue:{foo}", "a{foo}b{bar}"}) EXPECT_EQ(slot_of(name), 12182) << name;
  for (const char* name : {"a{}foo", "a{foo"}) EXPECT_NE(slot_of(name), 12182) << name;
  EXPECT_EQ(slot_of("a{{foo}}"), slot_of("{foo"));
  EXPECT_EQ(slot_of_command({"EVALSHA", "0", "2", "foo", "bar", "x"}), slot_of("foo"));
  EXPECT_EQ(slot_of_command({"EVAL", "return 1", "0", "foo"}), std::nullopt);
  EXPECT_EQ(slot_of_command({"EVAL", "return 1", "1"}), std::nullopt);
  EXPECT_EQ(slot_of_command({"SPUBLISH", "foo", "x"}), slot_of("foo"));
  EXPECT_EQ(slot_of_command({"PTTL", "foo"}), slot_of("foo"));
  EXPECT_EQ(slot_of_command({"DEL"}), std::nullopt);
  EXPECT_EQ(slot_of_command({"SCAN", "0"}), std::nullopt);
}

TEST(Redirection, IsReadAndNotBelieved) {
  auto found = read_redirection("MOVED 3999 127.0.0.1:6381");
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->for_once);
  EXPECT_EQ(found->slot, 3999);
  EXPECT_EQ(found->node, (Host{"127.0.0.1", 6381}));
  found = read_redirection("ASK 0 ::1:6381");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->for_once);
  EXPECT_EQ(found->node, (Host{"::1", 6381}));
  EXPECT_EQ(read_redirection("MOVED 1 :6381")->node, (Host{"", 6381}));
  EXPECT_EQ(read_redirection("MOVED 1 ?:6381")->node, (Host{"", 6381}));
  for (const std::string text : {"MOVED", "MOVED 16384 a:1", "MOVED -1 a:1", "MOVED 1 a", "MOVED 1 a:0",
                                 "MOVED 1 a:65536", "MOVED 1 a\x1b:1", "MOVED x a:1", "MOVES 1 a:1"}) {
    EXPECT_FALSE(read_redirection(text)) << text;
  }
  EXPECT_FALSE(read_redirection("MOVED 1 " + std::string(300, 'a') + ":1"));
}

Reply text(std::string value) { return {.kind = Reply::Kind::string, .text = std::move(value)}; }
Reply number(long long value) { return {.kind = Reply::Kind::integer, .integer = value}; }
Reply list(std::vector<Reply> elements) { return {.kind = Reply::Kind::array, .elements = std::move(elements)}; }

TEST(SlotMap, KnowsOwners) {
  SlotMap map;
  EXPECT_TRUE(map.is_stale());
  const auto reply = list({list({number(0), number(99), list({text("a"), number(1), text("id")}),
                                 list({text("b"), number(2), text("id")})}),
                           list({number(100), number(16000), list({Reply{}, number(3), text("id")})})});
  ASSERT_TRUE(map.read(reply, {"seed", 9}, false));
  EXPECT_FALSE(map.is_stale());
  EXPECT_FALSE(map.sharded());
  EXPECT_EQ(map.owner(99), (Host{"a", 1}));
  EXPECT_EQ(map.owner(100), (Host{"seed", 3})) << "no name is that of the server that was asked";
  EXPECT_EQ(map.owner(16001), std::nullopt);
  EXPECT_EQ(map.without_owner(), 383);
  EXPECT_EQ(map.owners().size(), 2U);
  EXPECT_EQ(map.nodes().size(), 3U);
  map.lost({"a", 1});
  EXPECT_TRUE(map.is_stale());
  EXPECT_EQ(map.nodes().back(), (Host{"a", 1}));
  EXPECT_EQ(map.moved({false, 99, {"", 4}}, {"a", 1}), (Host{"a", 4}));
  EXPECT_EQ(map.owner(99), (Host{"a", 4}));
  EXPECT_EQ(map.moved({true, 98, {"c", 4}}, {"a", 1}), (Host{"c", 4}));
  EXPECT_EQ(map.owner(98), (Host{"a", 1})) << "ASK is for once";
}

TEST(SlotMap, AsksServersInDoubtLast) {
  const auto node = [](const char* name) { return list({text(name), number(1)}); };
  const auto reply = list({list({number(0), number(1), node("a")}), list({number(2), number(3), node("b")}),
                           list({number(4), number(16383), node("c")})});
  const std::vector<Host> seeds{{"s", 1}, {"b", 1}};
  SlotMap map;
  EXPECT_EQ(map.nodes(seeds), seeds);
  ASSERT_TRUE(map.read(reply, {"s", 1}, false));
  EXPECT_EQ(map.nodes(seeds), (std::vector<Host>{{"a", 1}, {"b", 1}, {"c", 1}, {"s", 1}}));
  map.lost({"b", 1});
  EXPECT_EQ(map.nodes(seeds), (std::vector<Host>{{"a", 1}, {"c", 1}, {"s", 1}, {"b", 1}}));
  EXPECT_EQ(map.owners(), (std::vector<Host>{{"a", 1}, {"c", 1}, {"b", 1}}));
  ASSERT_TRUE(map.read(reply, {"a", 1}, false));
  map.lost({"b", 1});
  EXPECT_EQ(map.nodes(seeds), (std::vector<Host>{{"c", 1}, {"s", 1}, {"a", 1}, {"b", 1}}));
  map.lost({"", 0});
  EXPECT_EQ(map.nodes(), (std::vector<Host>{{"c", 1}, {"b", 1}, {"a", 1}})) << "an adopted connection has no name";
}

TEST(SlotMap, UsesAnnouncedNamesOnRequest) {
  const auto reply =
      list({list({number(0), number(16383),
                  list({text("10.0.0.1"), number(1), text("id"), list({text("hostname"), text("one.example")})})})});
  SlotMap map;
  ASSERT_TRUE(map.read(reply, {}, false));
  EXPECT_TRUE(map.sharded());
  EXPECT_EQ(map.owner(0), (Host{"10.0.0.1", 1}));
  ASSERT_TRUE(map.read(reply, {}, true));
  EXPECT_EQ(map.owner(0), (Host{"one.example", 1}));
  EXPECT_EQ(map.moved({false, 7, {"10.0.0.1", 1}}, {}), (Host{"one.example", 1}));
}

TEST(SlotMap, RefusesMalformedLists) {
  SlotMap map;
  const auto node = list({text("a"), number(1)});
  ASSERT_TRUE(map.read(list({list({number(0), number(1), node})}), {}, false));
  for (const Reply& odd :
       {text("no"), list({text("no")}), list({list({number(0), number(16384), node})}),
        list({list({number(5), number(4), node})}), list({list({number(-1), number(4), node})}),
        list({list({number(0), number(4)})}), list({list({number(0), number(4), list({text("a\n"), number(1)})})}),
        list({list({number(0), number(4), list({text("a"), number(0)})})}), list({}),
        list({list({number(0), number(4), list({text("b"), number(1), text("id"), list({})})}), text("no")})}) {
    EXPECT_FALSE(map.read(odd, {}, false));
    EXPECT_EQ(map.owner(1), (Host{"a", 1})) << "what was known stays";
    EXPECT_FALSE(map.sharded());
  }
}

}  // namespace
}  // namespace rlock::redis
