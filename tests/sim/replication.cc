// SPDX-License-Identifier: MIT
#include "replication.h"

#include <algorithm>

namespace rlock::sim {
namespace {

constexpr long long kMaxLag = 10;  // min-replicas-max-lag, in seconds

std::string place(std::size_t server) { return std::to_string(Network::kFirstPort + static_cast<int>(server)); }

}  // namespace

Replication::Replication(Network& network, Faults& faults, bool fenced, bool prompt)
    : network_(network),
      faults_(faults),
      prompt_(prompt),
      members_(network.size() - kSentinels),
      side_(network.size()),
      lag_(world->random.spread(kMillisecond, 2 * kSecond)),
      down_after_(world->random.spread(kSecond, 10 * kSecond)) {
  const auto replicas = static_cast<int>(members_.size()) - 1;
  if (fenced) required_ = world->random.chance(0.5) ? 1 : replicas;
  for (std::size_t i = 1; i < members_.size(); ++i) follow(i, 0);
  for (std::size_t i = 1; i < members_.size(); ++i) link(i);
}

std::string Replication::url() const {
  std::string hosts;
  for (std::size_t i = members_.size(); i < network_.size(); ++i)
    hosts += (hosts.empty() ? "" : ",10.0.0.1:") + place(i);
  return "redis+sentinel://10.0.0.1:" + hosts + "/m";
}

std::optional<std::string> Replication::answer(Server& server, int, const Words& words) {
  const auto i = static_cast<std::size_t>(server.index());
  if (!is_member(i)) {
    const Sentinel& sentinel = sentinels_[i - members_.size()];
    if (words[0] != "SENTINEL") return "-ERR unknown command\r\n";
    if (words[1] == "MASTER") return array({bulk("config-epoch"), bulk(std::to_string(sentinel.epoch))});
    return array({bulk("10.0.0.1"), bulk(place(sentinel.master))});
  }
  if (words[0] == "ROLE") return array({bulk(is_master(i) ? "master" : "slave")});
  if (words[0] != "CLIENT" || words[1] != "LIST") return {};
  std::string list;
  for (const Member& member : members_) {
    if (!member.linked || member.master != i) continue;
    list += "id=7 name= age=" + std::to_string(seconds_at(i) - server.clock.at(member.since) / 1000) + " flags=S\n";
  }
  return bulk(list);
}

std::string Replication::refuses(const Server& server, const Words&, bool first_write) const {
  if (!first_write) return "";
  const auto i = static_cast<std::size_t>(server.index());
  if (!is_master(i)) return "READONLY You can't write against a read only replica.";
  return members_[i].good < required_ ? "NOREPLICAS Not enough good replicas to write." : "";
}

void Replication::executed(Server& server, const Messages& messages) {
  const auto from = static_cast<std::size_t>(server.index());
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (members_[i].linked && members_[i].master == from) copy(from, i, messages);
  }
}

// Of a process that starts, all is lost but its data and its role.
void Replication::restarted(Server& server) {
  const auto i = static_cast<std::size_t>(server.index());
  if (!is_member(i)) return;
  members_[i].backlog = false;
  members_[i].good = 0;
  unlink(i);
  for (std::size_t other = 0; other < members_.size(); ++other) {
    if (members_[other].master == i) unlink(other);
  }
}

// The one that most Sentinels name, for longer than an answer of theirs counts.
Server* Replication::certain() {
  return certain_since_ < world->now() - 500 * kMillisecond ? &network_.server(master_) : nullptr;
}

void Replication::unlink(std::size_t i) {
  Member& member = members_[i];
  if (member.linked) member.since = world->now();
  member.linked = false;
  ++member.link;
}

// A replica connects to its master, and gets all data; a resynchronization that is only partial comes to the same.
void Replication::link(std::size_t i) {
  Member& member = members_[i];
  Server& master = network_.server(member.master);
  if (!std::exchange(members_[member.master].backlog, true)) master.begin_life();
  member.linked = true;
  member.since = world->now();
  member.heard = seconds_at(member.master);
  copy(member.master, i, {});
}

void Replication::copy(std::size_t from, std::size_t to, const Messages& messages) {
  Member& member = members_[to];
  const Time late = world->random.spread(100 * kMicrosecond, lag_), held = parted(from, to) ? split_until_ : 0;
  member.arrives = std::max({member.arrives + kMicrosecond, world->now() + late, held, network_.hangs_until(to)});
  const model::Database& data = network_.server(from).data();
  const auto arrive = [this, to, link = member.link, data, messages] {
    if (members_[to].link != link || !network_.is_up(to)) return;
    Server& server = network_.server(to);
    server.data().entries = data.entries;
    server.data().life = data.life;
    server.data().life_before = data.life_before;
    for (const auto& [channel, text] : messages) server.tell(channel, text);
  };
  world->at(member.arrives, arrive);
}

// REPLICAOF: its own replicas are disconnected.
void Replication::follow(std::size_t i, std::size_t master) {
  world->tell([&] { return "server " + std::to_string(i + 1) + " follows server " + std::to_string(master + 1); });
  unlink(i);
  members_[i].master = master;
  members_[i].told_at = kNever;
  network_.server(i).data().replica = true;
  for (std::size_t other = 0; other < members_.size(); ++other) {
    if (members_[other].master == i) unlink(other);
  }
}

// REPLICAOF NO ONE.
void Replication::promote(std::size_t i) {
  world->tell([&] { return "server " + std::to_string(i + 1) + " becomes a master"; });
  unlink(i);
  members_[i].master = i;
  members_[i].backlog = true;
  members_[i].good = 0;
  model::Database& data = network_.server(i).data();
  data.replica = false;
  data.life_before = data.life;
  network_.server(i).begin_life();
}

void Replication::joins(const Process& process) {
  processes_.push_back(&process);
  if (world->now() >= split_until_) return;
  const bool side = world->random.chance(0.5);
  for (std::size_t i = 0; i < side_.size(); ++i) {
    if (side_[i] != side) network_.part(process, i, true, true, split_until_);
  }
}

// The master is cut off; others may be on its side. But if it needs only some of its replicas, none is
// (docs/servers.md).
void Replication::split() {
  split_until_ = world->now() + world->random.spread(kSecond, 60 * kSecond);
  const bool alone = required_ < static_cast<int>(members_.size()) - 1;
  for (std::size_t i = 0; i < side_.size(); ++i) side_[i] = world->random.chance(0.3) && !(alone && is_member(i));
  side_[master_] = true;
  for (const Process* process : std::exchange(processes_, {})) {
    if (!process->dead) joins(*process);
  }
}

void Replication::happen() {
  for (std::size_t i = 0; i < members_.size(); ++i) replicate(i);
  learn();
  const auto first = leader();
  if (first) look_after(*first);
  if (world->now() < split_until_) return;
  if (faults_.happens(Faults::Kind::split, static_cast<int>(master_) + 1)) return split();
  if (first && faults_.happens(Faults::Kind::fail_over, static_cast<int>(master_) + 1)) fail_over(*first, 0);
}

// What a server does once a second.
void Replication::replicate(std::size_t i) {
  Member& member = members_[i];
  if (!network_.serves(i)) return;
  if (!is_master(i)) {
    const bool reached = reaches(i, member.master) && is_master(member.master);
    if (reached && !member.linked) link(i);
    if (reached) member.heard = seconds_at(member.master);
    return;
  }
  member.good = static_cast<int>(std::ranges::count_if(members_, [&](const Member& other) {
    return other.linked && other.master == i && seconds_at(i) - other.heard <= kMaxLag;
  }));
}

// Sentinels tell each other every two seconds, and at once of a new master: on Redis 7.0, others knew it 56 to 100 ms
// after the one that led the failover. So one that dies or hangs has told them before, here even if
// it was cut off until then.
void Replication::learn() {
  for (std::size_t i = 0; i < kSentinels; ++i) {
    Sentinel& sentinel = sentinels_[i];
    for (std::size_t other = 0; other < kSentinels; ++other) {
      const bool newer = sentinels_[other].epoch > sentinel.epoch;
      if (!newer || !network_.serves(members_.size() + i) || parted(members_.size() + i, members_.size() + other))
        continue;
      if (world->random.chance(0.5) && !prompt_ && sentinel.missed++ == 0) continue;
      sentinel = sentinels_[other];
      sentinel.missed = 0;
    }
  }
  const auto know = static_cast<std::size_t>(std::ranges::count(sentinels_, master_, &Sentinel::master));
  if (certain_since_ == kNever && 2 * know > kSentinels) certain_since_ = world->now();
}

std::optional<std::size_t> Replication::leader() const {
  for (std::size_t i = members_.size(); i < network_.size(); ++i) {
    std::size_t reached = 0;
    for (std::size_t other = members_.size(); other < network_.size(); ++other) reached += reaches(i, other);
    if (2 * reached > kSentinels) return i;
  }
  return {};
}

void Replication::look_after(std::size_t leader) {
  const Time now = world->now();
  if (reaches(leader, master_)) {
    unreachable_since_ = kNever;
  } else if (unreachable_since_ == kNever) {
    unreachable_since_ = now;
  } else if (now - unreachable_since_ >= down_after_) {
    fail_over(leader, now - unreachable_since_);
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    if (i == master_ || member.master == master_ || !reaches(leader, i) || now < chosen_at_) {
      member.told_at = kNever;
    } else if (!is_master(i) || now >= member.told_at) {
      follow(i, master_);
    } else if (member.told_at == kNever) {
      member.told_at = now + world->random.between(8 * kSecond, 20 * kSecond);
    }
  }
}

void Replication::fail_over(std::size_t leader, Time unreachable) {
  const Time now = world->now();
  if (now < chosen_at_ + 3 * kSecond) return;
  std::vector<std::size_t> able;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    const bool fresh = member.linked || now - member.since <= unreachable + 10 * down_after_;
    if (member.master == master_ && i != master_ && reaches(leader, i) && fresh) able.push_back(i);
  }
  if (able.empty()) return;
  const std::size_t chosen = able[static_cast<std::size_t>(world->random.below(static_cast<Time>(able.size())))];
  promote(chosen);
  unreachable_since_ = certain_since_ = kNever;
  master_ = chosen;
  // The leader looks whether it has become one.
  chosen_at_ = now + world->random.below(kSecond);
  world->at(chosen_at_, [this, leader, chosen] {
    int epoch = 0;
    for (const Sentinel& sentinel : sentinels_) epoch = std::max(epoch, sentinel.epoch + 1);
    sentinels_[leader - members_.size()] = {.master = chosen, .epoch = epoch};
    if (prompt_) learn();
  });
}

}  // namespace rlock::sim
