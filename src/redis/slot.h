// SPDX-License-Identifier: MIT
// Which part of a cluster a command is about, and which server keeps it (redis.io, "Redis cluster specification").
#pragma once

#include <array>
#include <atomic>

#include "redis/connection.h"
#include "redis/reply.h"

namespace rlock::redis {

inline constexpr int kSlots = 16384;

// The hash slot of a key or of a sharded channel: CRC16 (XMODEM) of its hash_tag().
int slot_of(std::string_view key);

// The slot of a command that rlock sends, by its first key or its channel. Returns nothing if any server can be
// asked.
std::optional<int> slot_of_command(const Words& command);

// A server says that another one keeps a slot.
struct Redirection {
  bool for_once = false;  // ASK: the slot is moving, so this does not hold for the next command
  int slot = 0;
  Host node;  // without a name: the host that was asked, with this port
};

// Reads "MOVED 3999 host:port" and "ASK 3999 host:port". Returns nothing if it is something else, or does not name a
// server. Untrusted text.
std::optional<Redirection> read_redirection(std::string_view error);

// Whether these can be the name of a host, which may be empty, and a port.
bool can_be_node(std::string_view name, long long port);

// Which server of a cluster keeps which slot, as far as is known. May be wrong, because a server that is asked for a
// slot that it does not keep says so. Shared by all connections to one cluster; threads may use it at the same time.
class SlotMap {
 public:
  // Reads the reply of `asked` to CLUSTER SLOTS. `by_name`: use the name that a server announces, if any, because
  // certificates are for names. Errors: protocol (not such a list), unavailable (no server has a slot).
  Result<void> read(const Reply& slots, const Host& asked, bool by_name);

  // Returns nothing if no server keeps it, as far as is known.
  std::optional<Host> owner(int slot) const;
  // The servers that keep slots, those in doubt last.
  std::vector<Host> owners() const;
  // All known servers and `seeds`; those in doubt last, in the order in which they came into doubt.
  std::vector<Host> nodes(std::span<const Host> seeds = {}) const;
  // The number of slots without a server.
  int without_owner() const;

  // Notes a redirection. Returns the server's known name.
  Host moved(const Redirection& redirection, const Host& asked);
  // The server does not answer, or does not serve. Then it is in doubt, as is the server whose list named it: one that
  // is cut off from the others names the servers that kept the slots before.
  void lost(const Host& node);
  // The list was not read yet, or is out of date.
  bool is_stale() const { return stale_; }
  void set_stale() { stale_ = true; }

  // The servers have channels for each slot (SPUBLISH, since Redis 7).
  bool sharded() const {
    const std::lock_guard guard(mutex_);
    return known_.sharded;
  }

 private:
  struct Node {
    Host host;
    std::string other_name;  // which servers may use as well
  };
  struct Known {
    std::vector<Node> nodes;
    std::array<std::uint16_t, kSlots> owner{};  // index in nodes + 1; 0: none
    bool sharded = false;
    // Its index + 1; adds it if necessary.
    std::uint16_t index_of(const Node& node);
  };
  static std::optional<Node> read_node(const Reply& node, const Host& asked, bool by_name);
  static Result<Known> read_ranges(const Reply& slots, const Host& asked, bool by_name);
  void doubt(const Host& host);
  void put_doubted_last(std::vector<Host>& hosts) const;

  mutable std::mutex mutex_;
  Known known_;
  std::optional<Host> teacher_;  // the server that sent the list
  std::vector<Host> in_doubt_;   // the latest one at the end
  std::atomic<bool> stale_ = true;
};

}  // namespace rlock::redis
