// SPDX-License-Identifier: MIT
// What the servers of a cluster say of each other: the list of slots, and redirections.
#include "fuzz.h"
#include "redis/slot.h"

void fuzz(std::string_view bytes) {
  using namespace rlock::redis;
  const Host asked{"127.0.0.1", 6379};
  SlotMap map;
  if (const auto reply = reply_in(bytes)) {
    (void)map.read(*reply, asked, false);
    (void)map.read(*reply, asked, true);
  }
  if (const auto redirection = read_redirection(bytes)) {
    check(redirection->slot >= 0 && redirection->slot < kSlots);
    const Host node = map.moved(*redirection, asked);
    check(can_be_node(node.name, node.port));
    check(map.owner(redirection->slot) == node || redirection->for_once);
  }
  for (const Host& host : map.owners()) {
    check(can_be_node(host.name, host.port));
    map.lost(host);
  }
  check(map.without_owner() >= 0 && map.without_owner() <= kSlots);
}
