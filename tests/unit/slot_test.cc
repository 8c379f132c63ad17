// SPDX-License-Identifier: MIT
#include "redis/slot.h"

#include <gtest/gtest.h>

namespace rlock::redis {
namespace {

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
