// SPDX-License-Identifier: MIT
#include "redis/slot.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "base/text.h"

namespace rlock::redis {
namespace {

constexpr std::size_t kLongestHostName = 255;  // of a host (RFC 1035 §2.3.4)

constexpr std::array<std::uint16_t, 256> kCrc16 = [] {
  std::array<std::uint16_t, 256> table{};
  for (unsigned i = 0; i < table.size(); ++i) {
    unsigned crc = i << 8;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
    table[i] = static_cast<std::uint16_t>(crc);
  }
  return table;
}();

std::optional<long long> number(std::string_view text) {
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

}  // namespace

int slot_of(std::string_view key) {
  if (const auto open = key.find('{'); open != key.npos) {
    const auto close = key.find('}', open + 1);
    if (close != key.npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
  }
  unsigned crc = 0;
  for (const char c : key) crc = (crc << 8 & 0xffff) ^ kCrc16[(crc >> 8 ^ static_cast<unsigned char>(c)) & 0xff];
  return static_cast<int>(crc % kSlots);
}

std::optional<int> slot_of_command(const Words& command) {
  const auto is = [&](std::string_view name) { return command.front() == name; };
  if (is("EVAL") || is("EVALSHA")) {
    return command.size() > 3 && command[2] != "0" ? std::optional(slot_of(command[3])) : std::nullopt;
  }
  const bool about_one = is("TYPE") || is("PTTL") || is("DEL") || is("PUBLISH") || is("SPUBLISH") ||
                         is("XREVRANGE") || is("HMGET");
  return about_one && command.size() > 1 ? std::optional(slot_of(command[1])) : std::nullopt;
}

bool can_be_node(std::string_view name, long long port) {
  return name.size() <= kLongestHostName && !has_control(name) && name.find(' ') == name.npos && port >= 1 && port <= 65535;
}

std::optional<Redirection> read_redirection(std::string_view error) {
  const auto word = [&] {
    const std::string_view first = error.substr(0, error.find(' '));
    error.remove_prefix(std::min(first.size() + 1, error.size()));
    return first;
  };
  const std::string_view kind = word();
  if (kind != "MOVED" && kind != "ASK") return {};
  const auto slot = number(word());
  const std::string_view place = word();
  const auto colon = place.rfind(':');  // an IPv6 address has no brackets here
  if (!slot || *slot < 0 || *slot >= kSlots || colon == place.npos) return {};
  const auto port = number(place.substr(colon + 1));
  if (!port || !can_be_node(place.substr(0, colon), *port)) return {};
  const std::string name(place.substr(0, colon));
  return Redirection{kind == "ASK", static_cast<int>(*slot), {name == "?" ? "" : name, static_cast<int>(*port)}};
}

}  // namespace rlock::redis
