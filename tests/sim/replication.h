// SPDX-License-Identifier: MIT
// A master, its replicas, and three Sentinels that replace it: what Redis 7 does, as far as it matters to locks.
//
// Replicas get the master's data as they were after each command, in order, but late. A second after a replica is
// connected and heard, the master counts it for min-replicas-to-write. A master's master_replid changes when it starts,
// when the first replica connects to it after that, and when a replica becomes one. Sentinels that are a majority
// replace a master that does not answer for long enough, or when they are told to. Each learns of that on its own, up
// to two seconds later. They turn an old master into a replica eight to twenty seconds after they reach it again.
#pragma once

#include "network.h"

namespace rlock::sim {

class Replication final : public Peers {
 public:
  static constexpr std::size_t kSentinels = 3;

  // All servers of `network`: the master, replicas, and Sentinels. `fenced`: a master refuses writes when replicas are
  // missing (min-replicas-to-write), by the rule of docs/servers.md. `prompt`: Sentinels hear of a new master at once.
  Replication(Network& network, Faults& faults, bool fenced, bool prompt);

  std::string url() const override;
  void joins(const Process& process) override;
  void happen() override;
  std::optional<std::string> answer(Server& server, int client, const Words& words) override;
  std::string refuses(const Server& server, const Words& words, bool first_write) const override;
  void executed(Server& server, const Messages& messages) override;
  void restarted(Server& server) override;
  Server* certain() override;

 private:
  struct Member {
    std::size_t master = 0;  // whom it follows; itself: it is a master
    bool linked = false;     // to its master
    int link = 0;            // the number of that connection
    Time since = 0;          // when it was linked, or no longer
    Time arrives = 0;        // when the latest data arrive here
    long long heard = 0;     // when its master last heard of it, in seconds by its master's clock
    bool backlog = false;    // a replica has been connected
    int good = 0;            // how many replicas it has heard of lately
    Time told_at = kNever;   // when Sentinels turn it into a replica
  };
  struct Sentinel {
    std::size_t master = 0;
    int epoch = 0;
    int missed = 0;
  };

  bool is_member(std::size_t i) const { return i < members_.size(); }
  bool is_master(std::size_t i) const { return members_[i].master == i; }
  bool parted(std::size_t one, std::size_t other) const {
    return world->now() < split_until_ && side_[one] != side_[other];
  }
  bool reaches(std::size_t one, std::size_t other) const {
    return network_.serves(one) && network_.serves(other) && !parted(one, other);
  }
  long long seconds_at(std::size_t i) { return network_.server(i).clock.at(world->now()) / 1000; }
  void unlink(std::size_t i);
  void link(std::size_t i);
  void copy(std::size_t from, std::size_t to, const Messages& messages);
  void follow(std::size_t i, std::size_t master);
  void promote(std::size_t i);
  void split();
  void replicate(std::size_t i);
  void learn();
  // A Sentinel that a majority of them reach, itself included; none: there is no such majority.
  std::optional<std::size_t> leader() const;
  void look_after(std::size_t leader);
  void fail_over(std::size_t leader, Time unreachable);

  Network& network_;
  Faults& faults_;
  const bool prompt_;
  std::vector<Member> members_;
  std::array<Sentinel, kSentinels> sentinels_{};
  std::vector<const Process*> processes_;
  std::vector<bool> side_;  // of each server in a partition
  Time split_until_ = 0;
  Time lag_, down_after_;   // the longest lag of a replica; after which a master counts as down
  int required_ = 0;        // min-replicas-to-write
  std::size_t master_ = 0;  // the one that the majority has chosen
  Time unreachable_since_ = kNever, chosen_at_ = 0;
  Time certain_since_ = 0;  // that is known to most of them
};

}  // namespace rlock::sim
