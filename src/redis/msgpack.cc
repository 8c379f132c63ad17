// SPDX-License-Identifier: MIT
#include "redis/msgpack.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace rlock::redis {
namespace {

constexpr int kMostLevels = 8;
constexpr std::size_t kMostValues = 65536;

void put(std::string& bytes, std::uint64_t number, int size) {
  while (size-- > 0) bytes += static_cast<char>(number >> (8 * size) & 0xff);
}

void put_text(std::string& bytes, std::string_view text) {
  if (text.size() < 32) {
    bytes += static_cast<char>(0xa0 | text.size());
  } else {
    bytes += text.size() < 65536 ? '\xda' : '\xdb';
    put(bytes, text.size(), text.size() < 65536 ? 2 : 4);
  }
  bytes += text;
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  // None: it is malformed.
  std::optional<Reply> whole() {
    auto value = next(0);
    return value && left_.empty() ? std::move(value) : std::nullopt;
  }

 private:
  std::optional<std::uint64_t> number(std::size_t size) {
    if (left_.size() < size) return {};
    std::uint64_t value = 0;
    for (const char byte : left_.substr(0, size)) value = value << 8 | static_cast<unsigned char>(byte);
    left_.remove_prefix(size);
    return value;
  }

  static std::optional<Reply> integer(std::optional<std::uint64_t> value, int unused_bits = 0) {
    if (!value) return {};
    const auto moved = static_cast<std::int64_t>(*value << unused_bits);
    return Reply{.kind = Reply::Kind::integer, .integer = moved >> unused_bits};
  }

  static std::optional<Reply> floating(double value) {
    const double most = 9007199254740992;  // 2^53, also in place of infinity
    if (std::isnan(value)) return Reply{};
    return Reply{.kind = Reply::Kind::integer, .integer = static_cast<long long>(std::clamp(value, -most, most))};
  }

  std::optional<Reply> text(std::optional<std::uint64_t> size) {
    if (!size || left_.size() < *size) return {};
    Reply reply{.kind = Reply::Kind::string, .text = std::string(left_.substr(0, *size))};
    left_.remove_prefix(*size);
    return reply;
  }

  // `each`: 2 for a map.
  std::optional<Reply> elements(std::optional<std::uint64_t> count, unsigned each, int depth) {
    if (!count || *count > kMostValues || depth >= kMostLevels) return {};
    Reply reply{.kind = Reply::Kind::array};
    for (std::uint64_t i = 0; i < *count * each; ++i) {
      auto one = ++values_ > kMostValues ? std::nullopt : next(depth + 1);
      if (!one) return {};
      reply.elements.push_back(*std::move(one));
    }
    return reply;
  }

  // Has a case for each kind of first byte in the specification, but those of extensions.
  std::optional<Reply> next(int depth) {
    const auto first = number(1);
    const std::uint64_t byte = first.value_or(0xc1);
    if (byte < 0x80 || byte >= 0xe0) return integer(byte, 56);
    if (byte < 0x90) return elements(byte & 0x0f, 2, depth);
    if (byte < 0xa0) return elements(byte & 0x0f, 1, depth);
    if (byte < 0xc0) return text(byte & 0x1f);
    const auto size = std::size_t{1} << (byte & 3);  // of numbers
    if (byte >= 0xcc && byte < 0xd0) return integer(number(size));
    if (byte >= 0xd0 && byte < 0xd4) return integer(number(size), static_cast<int>(64 - 8 * size));
    if (byte == 0xca || byte == 0xcb) {
      const auto bits = number(size == 4 ? 4 : 8);
      if (!bits) return {};
      return floating(byte == 0xcb ? std::bit_cast<double>(*bits)
                                   : std::bit_cast<float>(static_cast<std::uint32_t>(*bits)));
    }
    switch (byte) {
      case 0xc0:
      case 0xc2: return Reply{};
      case 0xc3: return integer(1);
      case 0xc4:
      case 0xd9: return text(number(1));
      case 0xc5:
      case 0xda: return text(number(2));
      case 0xc6:
      case 0xdb: return text(number(4));
      case 0xdc: return elements(number(2), 1, depth);
      case 0xdd: return elements(number(4), 1, depth);
      case 0xde: return elements(number(2), 2, depth);
      case 0xdf: return elements(number(4), 2, depth);
      default: return {};
    }
  }

  std::string_view left_;
  std::size_t values_ = 0;
};

}  // namespace

void PackedMap::begin(std::string_view key) {
  const auto count = static_cast<unsigned char>(bytes_[1]) * 256U + static_cast<unsigned char>(bytes_[2]) + 1;
  bytes_[1] = static_cast<char>(count >> 8);
  bytes_[2] = static_cast<char>(count & 0xff);
  put_text(bytes_, key);
}

PackedMap& PackedMap::add(std::string_view key, std::string_view text) {
  begin(key);
  put_text(bytes_, text);
  return *this;
}

PackedMap& PackedMap::add(std::string_view key, long long number) {
  begin(key);
  bytes_ += '\xd3';
  put(bytes_, static_cast<std::uint64_t>(number), 8);
  return *this;
}

PackedMap& PackedMap::add(std::string_view key, const PackedMap& map) {
  begin(key);
  bytes_ += map.bytes_;
  return *this;
}

PackedMap& PackedMap::add(std::string_view key, const std::vector<std::string>& list) {
  begin(key);
  bytes_ += '\xdc';
  put(bytes_, list.size(), 2);
  for (const std::string& one : list) put_text(bytes_, one);
  return *this;
}

PackedMap& PackedMap::flag(std::string_view key, bool wanted) {
  if (!wanted) return *this;
  begin(key);
  bytes_ += '\xc3';
  return *this;
}

Result<Reply> unpacked(std::string_view bytes) {
  auto value = Reader(bytes).whole();
  if (!value) return fail(Error::Code::protocol, "it is not a value of MessagePack, or too large");
  return *std::move(value);
}

}  // namespace rlock::redis
