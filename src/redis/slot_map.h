// SPDX-License-Identifier: MIT
// Knowledge about a cluster: which server keeps which slot. Untrusted: a server that is asked for a slot that it does
// not keep says so.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "redis/reply.h"
#include "redis/slot.h"

namespace rlock::redis {

// Shared by all that speak to one cluster; threads may use it at the same time.
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
  // The server does not answer, or does not serve. It is in doubt, as is the one by whose list it was found: a server that
  // is cut off from the others names those that kept the slots before.
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
  Result<void> read_ranges(const Reply& slots, const Host& asked, bool by_name);
  void doubt(const Host& host);
  void put_doubted_last(std::vector<Host>& hosts) const;
  // Its index. Makes one that is not there.
  std::uint16_t index_of(const Host& host, const std::string& other_name);

  mutable std::mutex mutex_;
  std::vector<Node> nodes_;
  std::array<std::uint16_t, kSlots> owner_{};  // index in nodes_, from 1 on; 0: nobody
  std::optional<Host> teacher_;  // whose list it is
  std::vector<Host> in_doubt_;   // the last one is the one that came last
  bool stale_ = true, sharded_ = false;
};

}  // namespace rlock::redis
