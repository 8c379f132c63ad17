// SPDX-License-Identifier: MIT
#include "redis/slot.h"

#include "base/text.h"

namespace rlock::redis {
namespace {

constexpr std::size_t kLongestHostName = 255;  // of a host (RFC 1035 §2.3.4)

constexpr std::size_t kMostNodes = 4096, kMostInDoubt = 64;

}  // namespace

int slot_of(std::string_view key) {
  unsigned crc = 0;
  for (const char c : hash_tag(key)) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(c)) << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  return static_cast<int>(crc % kSlots);
}

std::optional<int> slot_of_command(const Words& command) {
  constexpr std::string_view kScripts[] = {"EVAL", "EVALSHA"};
  constexpr std::string_view kOfOneKey[] = {"TYPE", "PTTL", "DEL", "PUBLISH", "SPUBLISH", "XREVRANGE", "HMGET"};
  const auto is_among = [&](const auto& names) { return std::ranges::find(names, command.front()) != std::end(names); };
  if (is_among(kScripts) && command.size() > 3 && command[2] != "0") return slot_of(command[3]);
  return is_among(kOfOneKey) && command.size() > 1 ? std::optional(slot_of(command[1])) : std::nullopt;
}

bool can_be_node(std::string_view name, long long port) {
  return name.size() <= kLongestHostName && !has_control(name) && !name.contains(' ') && port >= 1 && port <= 65535;
}

std::optional<Redirection> read_redirection(std::string_view error) {
  const std::string_view kind = take_part(error, ' ');
  if (kind != "MOVED" && kind != "ASK") return {};
  const auto slot = whole_number(take_part(error, ' '));
  const std::string_view place = take_part(error, ' ');
  const auto colon = place.rfind(':');  // an IPv6 address has no brackets here
  if (!slot || *slot < 0 || *slot >= kSlots || colon == place.npos) return {};
  const auto port = whole_number(place.substr(colon + 1));
  if (!port || !can_be_node(place.substr(0, colon), *port)) return {};
  const std::string name(place.substr(0, colon));
  return Redirection{kind == "ASK", static_cast<int>(*slot), {name == "?" ? "" : name, static_cast<int>(*port)}};
}

Result<void> SlotMap::read(const Reply& slots, const Host& asked, bool by_name) {
  const std::lock_guard guard(mutex_);
  stale_ = true;
  known_ = RLOCK_TRY(read_ranges(slots, asked, by_name));
  stale_ = false;
  teacher_ = asked;
  return {};
}

// {name, port, id, {field, value …}}, the last since Redis 7. Returns nothing if it has no usable name.
std::optional<SlotMap::Node> SlotMap::read_node(const Reply& node, const Host& asked, bool by_name) {
  std::string name = node.at(0).as_text(), announced = node.at(3).value_of("hostname").as_text();
  const auto port = node.at(1).as_number().value_or(0);
  if (name == "?") return {};
  if (name.empty()) name = asked.name;
  if (!can_be_node(name, port) || !can_be_node(announced, port)) return {};
  if (by_name && !announced.empty()) std::swap(name, announced);
  return Node{{name, static_cast<int>(port)}, announced};
}

Result<SlotMap::Known> SlotMap::read_ranges(const Reply& slots, const Host& asked, bool by_name) {
  const auto unexpected =
      fail(Error::Code::protocol, "unexpected reply to CLUSTER SLOTS; is something between us and Redis?");
  if (!slots.is(Reply::Kind::array)) return unexpected;
  Known known;
  for (const Reply& range : slots.elements) {
    const auto begin = range.at(0).as_number().value_or(-1), end = range.at(1).as_number().value_or(-1);
    const bool is_range = begin >= 0 && begin <= end && end < kSlots;
    if (!is_range || range.elements.size() < 3 || known.nodes.size() > kMostNodes) return unexpected;
    const auto nodes = std::span(range.elements).subspan(2);  // the master, then its replicas
    for (const Reply& each : nodes) {
      known.sharded |= each.elements.size() > 3;
      const auto node = read_node(each, asked, by_name);
      const auto index = node ? known.index_of(*node) : std::uint16_t{0};
      if (&each == &nodes.front()) std::fill(known.owner.begin() + begin, known.owner.begin() + end + 1, index);
    }
  }
  if (known.nodes.empty()) return fail(Error::Code::unavailable, "no server of the cluster has a slot");
  return known;
}

std::uint16_t SlotMap::Known::index_of(const Node& node) {
  const auto known = std::ranges::find(nodes, node.host, &Node::host);
  if (known != nodes.end()) return static_cast<std::uint16_t>(known - nodes.begin() + 1);
  nodes.push_back(node);
  return static_cast<std::uint16_t>(nodes.size());
}

std::optional<Host> SlotMap::owner(int slot) const {
  const std::lock_guard guard(mutex_);
  const auto index = known_.owner[static_cast<std::size_t>(slot)];
  return index == 0 ? std::nullopt : std::optional(known_.nodes[index - 1U].host);
}

std::vector<Host> SlotMap::owners() const {
  const std::lock_guard guard(mutex_);
  std::vector<bool> owns(known_.nodes.size() + 1);
  for (const auto index : known_.owner) owns[index] = true;
  std::vector<Host> owners;
  for (std::size_t i = 0; i < known_.nodes.size(); ++i) {
    if (owns[i + 1]) owners.push_back(known_.nodes[i].host);
  }
  put_doubted_last(owners);
  return owners;
}

std::vector<Host> SlotMap::nodes(std::span<const Host> seeds) const {
  const std::lock_guard guard(mutex_);
  std::vector<Host> hosts;
  for (const Node& node : known_.nodes) hosts.push_back(node.host);
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
  return static_cast<int>(std::ranges::count(known_.owner, 0));
}

Host SlotMap::moved(const Redirection& redirection, const Host& asked) {
  const std::lock_guard guard(mutex_);
  Host host = redirection.node;
  if (host.name.empty()) host.name = asked.name;
  if (host.name.empty()) {
    stale_ = true;  // the server of an adopted connection, whose name is unknown
    return host;
  }
  const auto same = [&](const Node& node) { return node.host.port == host.port && node.other_name == host.name; };
  if (const auto known = std::ranges::find_if(known_.nodes, same); known != known_.nodes.end()) host = known->host;
  if (redirection.for_once || known_.nodes.size() > kMostNodes) return host;
  known_.owner[static_cast<std::size_t>(redirection.slot)] = known_.index_of({host, ""});
  return host;
}

void SlotMap::lost(const Host& node) {
  const std::lock_guard guard(mutex_);
  if (teacher_) doubt(*teacher_);
  doubt(node);
  stale_ = true;
}

}  // namespace rlock::redis
