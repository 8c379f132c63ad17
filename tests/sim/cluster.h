// SPDX-License-Identifier: MIT
// The servers of a Redis Cluster, maybe with a replica each: who keeps which slot, and slots that move, key by key or
// at once.
//
// Each server has a view of its own of who keeps what. While a slot moves, its old server refuses what names keys that
// it no longer has (ASK, or TRYAGAIN if it has some of them), and the new one what was not announced by ASKING, or
// names keys that it does not have yet. A server that has given a slot away ends the subscriptions to its channels.
//
// The second half of the servers are replicas. A replica has what its master has, and takes its place if that is down
// for long enough, or by CLUSTER FAILOVER. The old master learns of that before it serves again, and becomes the
// replica.
#pragma once

#include "network.h"

namespace rlock::sim {

class Cluster final : public Peers {
 public:
  // `moved`: called when a slot has moved. `calm`: slots move quickly.
  Cluster(Network& network, Faults& faults, bool calm, std::function<void()> moved);

  std::string url() const override;
  void happen() override;
  std::optional<std::string> answer(Server& server, int client, const Words& words) override;
  std::string refuses(const Server& server, const Words& words, bool first_write) const override;
  void executed(Server& server, const Messages& messages) override;

 private:
  static constexpr std::size_t kSlots = 16384, kMasters = 3;
  using Owners = std::array<std::uint8_t, kSlots>;
  struct Node {
    Owners owners{};
    std::map<std::size_t, std::size_t> importing, migrating;  // slots, and from and to which server
    std::set<int> asking;                                     // clients that have sent ASKING
    Time down_since = kNever;
  };
  struct Move {
    std::size_t slot, from, to;
    Time pause = 0;  // the longest time between two steps
    int step = 0;
  };

  bool has_replicas() const { return nodes_.size() > kMasters; }
  static std::size_t slot_of(const std::string& key);
  // Of the redirection, "ASK" or "MOVED".
  static std::string redirection(const char* word, std::size_t slot, std::size_t to);
  std::string slots(const Node& node) const;
  void begin_move();
  void go_on(Move move);
  void do_step(Move& move);
  // Returns whether there was one.
  bool move_a_key(const Move& move);
  void learn(std::size_t node);
  std::size_t partner(std::size_t node) const { return (node + kMasters) % nodes_.size(); }
  // The replica of that master takes its place, if it can.
  void fail_over(std::size_t master);

  Network& network_;
  Faults& faults_;
  std::function<void()> moved_;
  std::vector<Node> nodes_;
  Owners owners_{};  // in truth
  std::array<std::size_t, kMasters> masters_{0, 1, 2};
  Time fails_over_after_;
  std::vector<std::size_t> used_;
  std::set<std::size_t> moving_;
  bool calm_, sharded_, needs_all_;  // there are channels of slots (Redis 7); cluster-require-full-coverage
  bool down_ = false;
};

}  // namespace rlock::sim
