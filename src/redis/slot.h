// SPDX-License-Identifier: MIT
// Which part of a cluster a command is about, and which server keeps it (redis.io, "Redis cluster specification").
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "redis/connection.h"
#include "redis/reply.h"
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

// Knowledge about a cluster: which server keeps which slot. Untrusted: a server that is asked for a slot that it does
// not keep says so. Shared by all that speak to one cluster; threads may use it at the same time.
class SlotMap {
 public:
  // Reads the reply to CLUSTER SLOTS of `asked`. `by_name`: a server is known by the name that it announces, where it
  // does: certificates are for names. Errors: protocol (no such list), unavailable (no server has a slot).
  Result<void> read(const Reply& slots, const Host& asked, bool by_name);

  // None: nobody keeps it, as far as is known.
  std::optional<Host> owner(int slot) const;
  // The servers that keep slots, those in doubt last.
  std::vector<Host> owners() const;
  // The servers that are known, and these; those in doubt last, and of these the one that came into doubt last.
  std::vector<Host> nodes(std::span<const Host> seeds = {}) const;
  // How many slots nobody keeps.
  int without_owner() const;

  // The slot is there, as another server has said. Returns how that one is known.
  Host moved(const Redirection& redirection, const Host& asked);
  // The server does not answer, or does not serve. It is in doubt, as is the one by whose list it was found: a server
  // that is cut off from the others names those that kept the slots before.
  void lost(const Host& node);
  // The list was not read yet, or does not fit any more.
  bool is_stale() const;
  void set_stale();

  // The servers have channels of their own for each slot (SPUBLISH, from Redis 7 on).
  bool sharded() const;

 private:
  struct Node {
    Host host;
    std::string other_name;  // by which it may be named as well
  };
  struct Known {
    std::vector<Node> nodes;
    std::array<std::uint16_t, kSlots> owner{};  // index in nodes, from 1 on; 0: nobody
    bool sharded = false;
    // Its index. Makes one that is not there.
    std::uint16_t index_of(const Host& host, const std::string& other_name);
  };
  static Result<Known> read_ranges(const Reply& slots, const Host& asked, bool by_name);
  void doubt(const Host& host);
  void put_doubted_last(std::vector<Host>& hosts) const;

  mutable std::mutex mutex_;
  Known known_;
  std::optional<Host> teacher_;  // whose list it is
  std::vector<Host> in_doubt_;   // the last one is the one that came last
  bool stale_ = true;
};

}  // namespace rlock::redis
