// SPDX-License-Identifier: MIT
// What the targets of this folder share. Each is a program of libFuzzer (https://llvm.org/docs/LibFuzzer.html), which
// calls fuzz() with ever new bytes, and ends with a report if it crashes, overflows, or breaks a check.
// tests/fuzz/run.sh builds and runs all of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/reply.h"

// Untrusted input.
void fuzz(std::string_view bytes);

// Ends the program if a promise of the code is broken.
inline void check(bool promise) {
  if (!promise) __builtin_trap();
}

// The first reply in the bytes, as the client would read it.
inline std::optional<rlock::redis::Reply> reply_in(std::string_view bytes) {
  rlock::redis::ReplyReader reader;
  reader.feed(bytes);
  auto reply = reader.next();
  return reply ? *std::move(reply) : std::nullopt;
}

// Whether it can be shown on a terminal: no control characters apart from the end of a line.
inline bool is_printable(std::string_view text) {
  return std::ranges::none_of(text, [](unsigned char c) { return (c < ' ' && c != '\n') || c == 0x7f; });
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  fuzz({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
