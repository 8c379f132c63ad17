// SPDX-License-Identifier: MIT
// Which part of a cluster a command is about (redis.io, "Redis cluster specification", key distribution model).
#pragma once

#include <optional>
#include <string_view>

#include "redis/connection.h"
#include "redis/url.h"

namespace rlock::redis {

inline constexpr int kSlots = 16384;

// The hash slot of a key or of a sharded channel: CRC16 (XMODEM) of what stands between the first { and the first }
// behind it, or of the whole key where nothing does.
int slot_of(std::string_view key);

// The slot of a command that rlock sends: that of the first key of a script, of the key of TYPE and DEL, of the channel
// of PUBLISH and SPUBLISH. None: any server may be asked.
std::optional<int> slot_of_command(const Words& command);

// A server's word that another one keeps a slot.
struct Redirection {
  bool for_once = false;  // ASK: the slot is on its way; nothing is known of the next command
  int slot = 0;
  Host node;  // without a name: that of the server that was asked
};

// Reads "MOVED 3999 host:port" and "ASK 3999 host:port". None: the text is something else, or names no server.
// Untrusted text.
std::optional<Redirection> read_redirection(std::string_view error);

// `name` can be that of a host, and `port` a port. `name` may be empty.
bool can_be_node(std::string_view name, long long port);

}  // namespace rlock::redis
