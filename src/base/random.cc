// SPDX-License-Identifier: MIT
#include "base/random.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "base/error.h"
#include "base/log.h"

namespace rlock {
namespace {

template <class T>
T random_bytes() {
  T bytes{};
  ssize_t got;
  do {
    got = getrandom(&bytes, sizeof bytes, 0);
  } while (got < 0 && errno == EINTR);
  // Up to 256 bytes always come at once (getrandom(2)).
  if (got != static_cast<ssize_t>(sizeof bytes)) log::die("getrandom: " + errno_text(errno));
  return bytes;
}

}  // namespace

std::string random_uuid() {
  auto bytes = random_bytes<std::array<unsigned char, 16>>();
  bytes[6] = (bytes[6] & 0x0f) | 0x40;  // version 4
  bytes[8] = (bytes[8] & 0x3f) | 0x80;  // variant of the RFC
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 0x0f];
  }
  return text;
}

std::uint64_t random_below(std::uint64_t limit) { return random_bytes<std::uint64_t>() % limit; }

}  // namespace rlock
