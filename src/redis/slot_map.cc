// SPDX-License-Identifier: MIT
#include "redis/slot_map.h"

#include <algorithm>
#include <utility>

namespace rlock::redis {
namespace {

constexpr std::size_t kMostNodes = 4096, kMostInDoubt = 64;

struct Place {
  Host host;
  std::string other_name;
};

// {name, port, id, {field, value …}}, the last one from Redis 7 on. None: it has no name that could be used.
std::optional<Place> read_node(const Reply& node, const Host& asked, bool by_name) {
  std::string name = node.at(0).as_text(), announced;
  const auto port = node.at(1).as_number().value_or(0);
  const Reply& more = node.at(3);
  for (std::size_t i = 0; i + 1 < more.elements.size(); i += 2) {
    if (more.at(i).as_text() == "hostname") announced = more.at(i + 1).as_text();
  }
  if (name == "?") return {};
  if (name.empty()) name = asked.name;
  if (!can_be_node(name, port) || !can_be_node(announced, port)) return {};
  if (by_name && !announced.empty()) std::swap(name, announced);
  return Place{{name, static_cast<int>(port)}, announced};
}

}  // namespace

Result<void> SlotMap::read(const Reply& slots, const Host& asked, bool by_name) {
  const std::lock_guard guard(mutex_);
  const auto nodes = std::exchange(nodes_, {});
  const auto owners = std::exchange(owner_, {});
  const bool sharded = sharded_;
  auto done = read_ranges(slots, asked, by_name);
  stale_ = !done;
  if (done) {
    teacher_ = asked;
    return done;
  }
  nodes_ = nodes;
  owner_ = owners;
  sharded_ = sharded;
  return done;
}

Result<void> SlotMap::read_ranges(const Reply& slots, const Host& asked, bool by_name) {
  const auto unexpected = [] {
    return fail(Error::Code::protocol, "unexpected reply to CLUSTER SLOTS; is something between us and Redis?");
  };
  if (!slots.is(Reply::Kind::array)) return unexpected();
  sharded_ = false;
  for (const Reply& range : slots.elements) {
    const auto begin = range.at(0).as_number().value_or(-1), end = range.at(1).as_number().value_or(-1);
    if (begin < 0 || end < begin || end >= kSlots || range.elements.size() < 3 || nodes_.size() > kMostNodes) {
      return unexpected();
    }
    std::uint16_t master = 0;
    for (std::size_t i = 2; i < range.elements.size(); ++i) {
      sharded_ = sharded_ || range.at(i).elements.size() > 3;
      const auto place = read_node(range.at(i), asked, by_name);
      if (!place) continue;
      const auto index = index_of(place->host, place->other_name);
      if (i == 2) master = index;
    }
    std::fill(owner_.begin() + begin, owner_.begin() + end + 1, master);
  }
  if (nodes_.empty()) return fail(Error::Code::unavailable, "no server of the cluster has a slot");
  return {};
}

std::uint16_t SlotMap::index_of(const Host& host, const std::string& other_name) {
  const auto known = std::ranges::find(nodes_, host, &Node::host);
  if (known != nodes_.end()) return static_cast<std::uint16_t>(known - nodes_.begin() + 1);
  nodes_.push_back({host, other_name});
  return static_cast<std::uint16_t>(nodes_.size());
}

std::optional<Host> SlotMap::owner(int slot) const {
  const std::lock_guard guard(mutex_);
  const auto index = owner_[static_cast<std::size_t>(slot)];
  return index == 0 ? std::nullopt : std::optional(nodes_[index - 1U].host);
}

std::vector<Host> SlotMap::owners() const {
  const std::lock_guard guard(mutex_);
  std::vector<bool> owns(nodes_.size() + 1);
  for (const auto index : owner_) owns[index] = true;
  std::vector<Host> owners;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (owns[i + 1]) owners.push_back(nodes_[i].host);
  }
  put_doubted_last(owners);
  return owners;
}

std::vector<Host> SlotMap::nodes(std::span<const Host> seeds) const {
  const std::lock_guard guard(mutex_);
  std::vector<Host> hosts;
  for (const Node& node : nodes_) hosts.push_back(node.host);
  for (const Host& seed : seeds) {
    if (std::ranges::find(hosts, seed) == hosts.end()) hosts.push_back(seed);
  }
  put_doubted_last(hosts);
  return hosts;
}

void SlotMap::put_doubted_last(std::vector<Host>& hosts) const {
  const auto place = [&](const Host& host) {
    const auto found = std::ranges::find(in_doubt_, host);
    return found == in_doubt_.end() ? -1 : found - in_doubt_.begin();
  };
  std::ranges::stable_sort(hosts, {}, place);
}

void SlotMap::doubt(const Host& host) {
  if (host.name.empty()) return;
  std::erase(in_doubt_, host);
  if (in_doubt_.size() == kMostInDoubt) in_doubt_.erase(in_doubt_.begin());
  in_doubt_.push_back(host);
}

int SlotMap::without_owner() const {
  const std::lock_guard guard(mutex_);
  return static_cast<int>(std::ranges::count(owner_, 0));
}

Host SlotMap::moved(const Redirection& redirection, const Host& asked) {
  const std::lock_guard guard(mutex_);
  Host host = redirection.node;
  if (host.name.empty()) host.name = asked.name;
  if (host.name.empty()) {
    stale_ = true;  // it is that of an adopted connection, and nobody knows where that leads
    return host;
  }
  const auto same = [&](const Node& node) { return node.host.port == host.port && node.other_name == host.name; };
  if (const auto known = std::ranges::find_if(nodes_, same); known != nodes_.end()) host = known->host;
  if (redirection.for_once || nodes_.size() > kMostNodes) return host;
  owner_[static_cast<std::size_t>(redirection.slot)] = index_of(host, "");
  return host;
}

void SlotMap::lost(const Host& node) {
  const std::lock_guard guard(mutex_);
  if (teacher_) doubt(*teacher_);
  doubt(node);
  stale_ = true;
}

bool SlotMap::is_stale() const {
  const std::lock_guard guard(mutex_);
  return stale_;
}

void SlotMap::set_stale() {
  const std::lock_guard guard(mutex_);
  stale_ = true;
}

bool SlotMap::sharded() const {
  const std::lock_guard guard(mutex_);
  return sharded_;
}

}  // namespace rlock::redis
