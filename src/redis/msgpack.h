// SPDX-License-Identifier: MIT
// MessagePack (github.com/msgpack/msgpack/blob/master/spec.md), as far as the script of lua/ and cmsgpack, the library
// of Redis, use it: requests are maps, and replies become a Reply.
#pragma once

#include "redis/reply.h"

namespace rlock::redis {

// A map whose keys are texts; each may be added once. It, and each list, has up to 65,535 elements.
class PackedMap {
 public:
  PackedMap& add(std::string_view key, std::string_view text);
  PackedMap& add(std::string_view key, long long number);
  PackedMap& add(std::string_view key, const PackedMap& map);
  PackedMap& add(std::string_view key, const std::vector<std::string>& list);
  // True if `wanted`; otherwise the key stays absent.
  PackedMap& flag(std::string_view key, bool wanted);

  // Valid as long as nothing is added.
  std::string_view bytes() const { return bytes_; }
  bool empty() const { return bytes_.size() == kHead; }

 private:
  void begin(std::string_view key);

  static constexpr std::size_t kHead = 3;  // of a map with up to 65,535 keys
  std::string bytes_{"\xde\0\0", kHead};
};

// A map becomes an array of its keys and values, for Reply::value_of; true 1; false, nil and NaN a nil; a floating
// number is cut to a whole one, at most 2^53; one of 2^63 or more becomes negative. Errors (protocol): it is anything
// else than one such value, or has more than eight levels or 65,536 elements.
Result<Reply> unpacked(std::string_view bytes);

}  // namespace rlock::redis
