// SPDX-License-Identifier: MIT
#include "cluster.h"

#include <algorithm>

namespace rlock::sim {
namespace {

constexpr const char* kTryAgain = "-TRYAGAIN Multiple keys request during rehashing of slot\r\n";
constexpr Time kTimeout = 15 * kSecond;  // cluster-node-timeout

// What a command names: its keys, or a channel.
Words keys_of(const Words& words) {
  static const std::set<std::string> kOthers = {"PUBLISH", "PUBSUB", "time", "info",   "publish",     "pubsub",
                                                "PING",    "INFO",   "TIME", "CLIENT", "UNSUBSCRIBE", "SUBSCRIBE"};
  if (kOthers.contains(words[0]) || words.size() < 2) return {};
  if (words[0] == "exists" || words[0] == "del") return {words.begin() + 1, words.end()};
  if (!words[0].starts_with("EVAL")) return {words[1]};
  return {words.begin() + 3, words.begin() + 3 + std::stoi(words[2])};
}

bool is_of_channel(const Words& words) {
  return words[0].ends_with("SUBSCRIBE") || words[0] == "spublish" || words[0] == "SPUBLISH";
}

}  // namespace

Cluster::Cluster(Network& network, Faults& faults, bool calm, std::function<void()> moved)
    : network_(network),
      faults_(faults),
      moved_(std::move(moved)),
      nodes_(network.size()),
      fails_over_after_(world->random.spread(kSecond, 10 * kSecond)),
      calm_(calm),
      sharded_(calm || world->random.chance(0.8)),
      needs_all_(world->random.chance(0.5)) {
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    owners_[slot] = static_cast<std::uint8_t>(slot * kMasters / kSlots);
  }
  for (Node& node : nodes_) node.owners = owners_;
}

std::string Cluster::url() const {
  return "redis+cluster://10.0.0.1:" + std::to_string(Network::kFirstPort) +
         ",10.0.0.1:" + std::to_string(Network::kFirstPort + 1);
}

// CRC16 (XMODEM) of what is in braces.
std::size_t Cluster::slot_of(const std::string& key) {
  const std::size_t open = key.find('{'), close = key.find('}', open + 1);
  const bool tagged = open != key.npos && close != key.npos && close > open + 1;
  unsigned crc = 0;
  for (const unsigned char c : tagged ? key.substr(open + 1, close - open - 1) : key) {
    crc ^= static_cast<unsigned>(c) << 8;
    for (int bit = 0; bit < 8; ++bit) crc = crc << 1 ^ (crc & 0x8000 ? 0x1021U : 0U);
    crc &= 0xffff;
  }
  return crc % kSlots;
}

std::string Cluster::redirection(const char* word, std::size_t slot, std::size_t to) {
  return std::string("-") + word + " " + std::to_string(slot) +
         " 10.0.0.1:" + std::to_string(Network::kFirstPort + static_cast<int>(to)) + "\r\n";
}

// CLUSTER SLOTS. Since Redis 7, each server has four elements.
std::string Cluster::slots(const Node& node) const {
  const auto name = [&](std::size_t i) {
    Words server = {bulk("10.0.0.1"), integer(Network::kFirstPort + static_cast<int>(i)),
                    bulk("id" + std::to_string(i))};
    if (sharded_) server.push_back(array({}));
    return array(server);
  };
  Words ranges;
  for (std::size_t begin = 0, end = 0; begin < kSlots; begin = end) {
    while (end < kSlots && node.owners[end] == node.owners[begin]) ++end;
    const std::size_t owner = node.owners[begin];
    Words range = {integer(static_cast<long long>(begin)), integer(static_cast<long long>(end) - 1), name(owner)};
    if (has_replicas()) range.push_back(name(partner(owner)));
    ranges.push_back(array(range));
  }
  return array(ranges);
}

// As getNodeByQuery of Redis' cluster.c.
std::optional<std::string> Cluster::answer(Server& server, int client, const Words& words) {
  const auto self = static_cast<std::size_t>(server.index());
  Node& node = nodes_[self];
  if (words[0] == "CLUSTER") return slots(node);
  if (words[0] == "ASKING") {
    node.asking.insert(client);
    return "+OK\r\n";
  }
  const bool asked = node.asking.erase(client) > 0;
  const Words keys = keys_of(words);
  if (keys.empty()) return {};
  const std::size_t slot = slot_of(keys.front());
  const auto elsewhere = [&](const std::string& key) { return slot_of(key) != slot; };
  if (std::ranges::any_of(keys, elsewhere)) return "-CROSSSLOT Keys in request don't hash to the same slot\r\n";
  if (down_) return "-CLUSTERDOWN The cluster is down\r\n";
  if (std::ranges::find(used_, slot) == used_.end()) used_.push_back(slot);
  const auto lacks = [&](const std::string& key) { return !server.data().find(model::id_of_key(key)); };
  const auto missing = is_of_channel(words) ? 0 : std::ranges::count_if(keys, lacks);
  if (node.owners[slot] == self) {
    const auto to = node.migrating.find(slot);
    if (to == node.migrating.end() || missing == 0) return {};
    return missing < std::ssize(keys) ? kTryAgain : redirection("ASK", slot, to->second);
  }
  if (!asked || !node.importing.contains(slot)) return redirection("MOVED", slot, node.owners[slot]);
  return keys.size() > 1 && missing > 0 ? std::optional(kTryAgain) : std::nullopt;
}

// A script may use keys that its caller has not named; they must be here.
std::string Cluster::refuses(const Server& server, const Words& words, bool) const {
  const auto self = static_cast<std::size_t>(server.index());
  for (const std::string& key : keys_of(words)) {
    const std::size_t slot = slot_of(key);
    const bool ours = nodes_[self].owners[slot] == self, moves = nodes_[self].migrating.contains(slot);
    const bool gone = moves && !is_of_channel(words) && !server.has(key);
    if (gone || (!ours && !nodes_[self].importing.contains(slot))) {
      return "ERR Script attempted to access a non local key in a cluster node";
    }
  }
  return "";
}

// Each server passes messages on to the others, those on channels of slots only to its master or replica.
void Cluster::executed(Server& server, const Messages& messages) {
  const auto self = static_cast<std::size_t>(server.index());
  for (const auto& [channel, text] : messages) {
    const bool sharded = channel.starts_with(model::kSharded);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (i == self || (sharded && i != partner(self))) continue;
      world->in(world->random.spread(100 * kMicrosecond, 10 * kMillisecond), [this, i, channel, text] {
        if (network_.serves(i)) network_.server(i).tell(channel, text);
      });
    }
  }
}

void Cluster::happen() {
  down_ = false;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Time& since = nodes_[i].down_since;
    since = network_.serves(i) ? kNever : std::min(since, world->now());
    if (std::ranges::find(masters_, i) == masters_.end()) continue;
    down_ = down_ || (needs_all_ && world->now() - kTimeout >= since);
    const bool dead = !network_.is_up(i) && world->now() - fails_over_after_ >= since;
    if (!has_replicas() || !moving_.empty()) continue;
    if (dead || (network_.serves(i) && faults_.happens(Faults::Kind::fail_over, static_cast<int>(i) + 1))) fail_over(i);
  }
  begin_move();
}

void Cluster::fail_over(std::size_t master) {
  const std::size_t next = partner(master);
  if (!network_.serves(next)) return;
  Server &from = network_.server(master), &to = network_.server(next);
  const bool loses = faults_.happens(Faults::Kind::lost_shard, from.index() + 1);
  to.data().entries = loses ? from.saved().entries : from.data().entries;
  from.data().entries.clear();
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    if (owners_[slot] != master) continue;
    for (const std::size_t node : {master, next}) nodes_[node].owners[slot] = static_cast<std::uint8_t>(next);
    owners_[slot] = static_cast<std::uint8_t>(next);
  }
  std::ranges::replace(masters_, master, next);
  for (std::size_t i = 0; i < nodes_.size(); ++i) learn(i);
  world->tell(
      [&] { return "server " + std::to_string(next + 1) + " takes the place of " + std::to_string(master + 1); });
  moved_();
}

void Cluster::begin_move() {
  const auto count = static_cast<Time>(used_.size());
  if (count == 0) return;
  Move move{.slot = used_[static_cast<std::size_t>(world->random.below(count))], .from = 0, .to = 0};
  move.from = owners_[move.slot];
  move.to = masters_[static_cast<std::size_t>(world->random.below(kMasters))];
  const auto slot = static_cast<std::int64_t>(move.slot);
  if (moving_.contains(move.slot) || move.to == move.from) return;
  const bool at_once = faults_.happens(Faults::Kind::move_at_once, slot);
  if (!at_once && !faults_.happens(Faults::Kind::move, slot)) return;
  if (!at_once) move.pause = calm_ ? 10 * kMillisecond : world->random.spread(kMillisecond, 20 * kSecond);
  moving_.insert(move.slot);
  go_on(move);
}

// Both servers must take part in each step.
void Cluster::go_on(Move move) {
  const auto later = [&](Time span) { world->in(span, [this, move] { go_on(move); }); };
  do {
    if (!network_.serves(move.from) || !network_.serves(move.to)) return later(500 * kMillisecond);
    do_step(move);
  } while (move.step < 5 && move.pause == 0);
  if (move.step < 5) return later(world->random.spread(100 * kMicrosecond, move.pause));
  world->tell(
      [&] { return "slot " + std::to_string(move.slot) + " has moved to server " + std::to_string(move.to + 1); });
  moving_.erase(move.slot);
  for (std::size_t i = 0; i < nodes_.size(); ++i) learn(i);
  moved_();
}

// In the order in which redis-cli --cluster reshard does it.
void Cluster::do_step(Move& move) {
  Node &from = nodes_[move.from], &to = nodes_[move.to];
  switch (move.step) {
    case 0: to.importing[move.slot] = move.from; break;
    case 1: from.migrating[move.slot] = move.to; break;
    case 2:
      if (move_a_key(move)) return;
      break;
    case 3:
      to.owners[move.slot] = owners_[move.slot] = static_cast<std::uint8_t>(move.to);
      to.importing.erase(move.slot);
      break;
    default:
      from.owners[move.slot] = owners_[move.slot];
      from.migrating.erase(move.slot);
      network_.server(move.from).end_subscriptions([&](const auto& channel) { return slot_of(channel) == move.slot; });
  }
  ++move.step;
}

// MIGRATE. Only the time that it has left is the same.
bool Cluster::move_a_key(const Move& move) {
  model::Database &from = network_.server(move.from).data(), &to = network_.server(move.to).data();
  const auto found = std::ranges::find_if(
      from.entries, [&](const model::Entry& one) { return slot_of(model::name_of(one.key)) == move.slot; });
  if (found == from.entries.end()) return false;
  model::Entry entry = *found;
  from.entries.erase(found);
  if (entry.expires != -1) entry.expires = to.now + std::max(entry.expires - from.now, 1LL);
  const auto at = std::ranges::lower_bound(to.entries, entry.key, {}, &model::Entry::key);
  to.entries.insert(at, std::move(entry));
  return true;
}

// A server that did not take part learns of it from the others.
void Cluster::learn(std::size_t node) {
  world->in(world->random.spread(kMillisecond, 2 * kSecond), [this, node] {
    if (!network_.serves(node)) return learn(node);
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      if (!moving_.contains(slot)) nodes_[node].owners[slot] = owners_[slot];
    }
  });
}

}  // namespace rlock::sim
