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

  // Returns nothing if it is malformed.
  std::optional<Reply> whole() {
    auto value = next();
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

  // What first bytes mean, from `first` to that of the next form. `size`: of the number that follows `first`; twice as
  // many bytes follow the next first byte, and so on. 0: the byte itself is the number, counted from `first`.
  struct Form {
    std::uint8_t first;
    std::size_t size;
    std::optional<Reply> (*read)(Reader& reader, std::uint64_t number, std::size_t size);
  };

  static std::optional<Reply> malformed(Reader&, std::uint64_t, std::size_t) { return {}; }
  static std::optional<Reply> nil(Reader&, std::uint64_t, std::size_t) { return Reply{}; }

  template <int more>
  static std::optional<Reply> natural(Reader&, std::uint64_t number, std::size_t) {
    return Reply{.kind = Reply::Kind::integer, .integer = static_cast<std::int64_t>(number) + more};
  }

  static std::optional<Reply> integer(Reader&, std::uint64_t number, std::size_t size) {
    const std::size_t unused = 64 - 8 * size;
    return Reply{.kind = Reply::Kind::integer, .integer = static_cast<std::int64_t>(number << unused) >> unused};
  }

  static std::optional<Reply> floating(Reader&, std::uint64_t bits, std::size_t size) {
    const double value =
        size == 8 ? std::bit_cast<double>(bits) : std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    const double most = 9007199254740992;  // 2^53, also in place of infinity
    if (std::isnan(value)) return Reply{};
    return Reply{.kind = Reply::Kind::integer, .integer = static_cast<long long>(std::clamp(value, -most, most))};
  }

  static std::optional<Reply> text(Reader& reader, std::uint64_t length, std::size_t) {
    if (reader.left_.size() < length) return {};
    Reply reply{.kind = Reply::Kind::string, .text = std::string(reader.left_.substr(0, length))};
    reader.left_.remove_prefix(length);
    return reply;
  }

  // `each`: 2 for a map.
  template <unsigned each>
  static std::optional<Reply> elements(Reader& reader, std::uint64_t count, std::size_t) {
    if (count > kMostValues || reader.level_ >= kMostLevels) return {};
    Reply reply{.kind = Reply::Kind::array};
    ++reader.level_;
    for (std::uint64_t i = 0; i < count * each; ++i) {
      auto one = ++reader.values_ > kMostValues ? std::nullopt : reader.next();
      if (!one) return {};
      reply.elements.push_back(*std::move(one));
    }
    --reader.level_;
    return reply;
  }

  std::optional<Reply> next() {
    // All of the specification, but no extensions.
    static constexpr Form kForms[] = {{0x00, 0, natural<0>},  {0x80, 0, elements<2>}, {0x90, 0, elements<1>},
                                      {0xa0, 0, text},        {0xc0, 0, nil},         {0xc1, 0, malformed},
                                      {0xc2, 0, nil},         {0xc3, 0, natural<1>},  {0xc4, 1, text},
                                      {0xc7, 0, malformed},   {0xca, 4, floating},    {0xcc, 1, natural<0>},
                                      {0xd0, 1, integer},     {0xd4, 0, malformed},   {0xd9, 1, text},
                                      {0xdc, 2, elements<1>}, {0xde, 2, elements<2>}, {0xe0, 0, natural<-32>}};
    const auto byte = number(1);
    if (!byte) return {};
    const Form& form = *std::prev(std::ranges::upper_bound(kForms, *byte, {}, &Form::first));
    const std::uint64_t place = *byte - form.first;
    const std::size_t size = form.size == 0 ? 0 : form.size << place;
    const auto argument = size == 0 ? place : number(size);
    return argument ? form.read(*this, *argument, size) : std::nullopt;
  }

  std::string_view left_;
  std::size_t values_ = 0;
  int level_ = 0;
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
