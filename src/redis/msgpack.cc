// SPDX-License-Identifier: MIT
#include "redis/msgpack.h"

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
    bytes += '\xda';
    put(bytes, text.size(), 2);
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

  static Reply integer(std::uint64_t value) {
    return {.kind = Reply::Kind::integer, .integer = static_cast<long long>(value)};
  }

  static Reply floating(double value) {
    const double most = 9007199254740992;  // 2^53, also in place of infinity
    if (std::isnan(value)) return {};
    return {.kind = Reply::Kind::integer, .integer = static_cast<long long>(std::fmin(std::fmax(value, -most), most))};
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
      auto one = ++elements_ > kMostValues ? std::nullopt : next(depth + 1);
      if (!one) return {};
      reply.elements.push_back(*std::move(one));
    }
    return reply;
  }

  // Has a case for each kind of first byte in the specification, but those of extensions.
  std::optional<Reply> next(int depth) {
    const auto first = number(1);
    if (!first) return {};
    const std::uint64_t byte = *first;
    if (byte < 0x80) return integer(byte);
    if (byte < 0x90) return elements(byte & 0x0f, 2, depth);
    if (byte < 0xa0) return elements(byte & 0x0f, 1, depth);
    if (byte < 0xc0) return text(byte & 0x1f);
    if (byte >= 0xe0) return integer(byte | ~std::uint64_t{0xff});
    const auto size = std::size_t{1} << (byte & 3);  // of most
    switch (byte) {
      case 0xc0:
      case 0xc2: return Reply{};
      case 0xc3: return integer(1);
      case 0xc4:
      case 0xc5:
      case 0xc6: return text(number(size));
      case 0xca: {
        const auto bits = number(4);
        return bits ? std::optional(floating(std::bit_cast<float>(static_cast<std::uint32_t>(*bits)))) : std::nullopt;
      }
      case 0xcb: {
        const auto bits = number(8);
        return bits ? std::optional(floating(std::bit_cast<double>(*bits))) : std::nullopt;
      }
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf: {
        const auto value = number(size);
        return value ? std::optional(integer(*value)) : std::nullopt;
      }
      case 0xd0:
      case 0xd1:
      case 0xd2:
      case 0xd3: {
        const auto value = number(size);
        const int unused = static_cast<int>(64 - 8 * size);
        return value ? std::optional(
                           integer(static_cast<std::uint64_t>(static_cast<std::int64_t>(*value << unused) >> unused)))
                     : std::nullopt;
      }
      case 0xd9: return text(number(1));
      case 0xda: return text(number(2));
      case 0xdb: return text(number(4));
      case 0xdc: return elements(number(2), 1, depth);
      case 0xdd: return elements(number(4), 1, depth);
      case 0xde: return elements(number(2), 2, depth);
      case 0xdf: return elements(number(4), 2, depth);
      default: return {};
    }
  }

  std::string_view left_;
  std::size_t elements_ = 0;
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
