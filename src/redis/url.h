// SPDX-License-Identifier: MIT
// The parts of addresses (RFC 3986). Errors of all: usage; none shows what may be a password.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace rlock::redis {

inline constexpr int kMostDatabases = 1 << 24;

struct Host {
  std::string name;
  int port = 0;
  bool operator==(const Host&) const = default;

  // As read_host reads it.
  std::string display() const;
};

std::unexpected<Error> bad_address(const std::string& why);

// Writes what `text` stands for to `out`, which has room for `text`, and returns its length. `what`: for messages.
Result<std::size_t> percent_decode(std::string_view text, std::string_view what, char* out);
Result<std::string> percent_decoded(std::string_view text, std::string_view what);
// `also`: bytes with a meaning of their own where the text stands.
std::string percent_encoded(std::string_view text, std::string_view also = "");

Result<int> number_in(std::string_view text, int least, int most, std::string_view what);

// The part before the host or path. The last @ ends it, so that a password with a forgotten %40
// cannot have its tail taken for a host, which would be contacted and shown. Null: there is none.
std::string_view userinfo_of(std::string_view rest);

// host, host:port, [IPv6], [IPv6]:port; whatever is missing is as in `otherwise`.
Result<Host> read_host(std::string_view text, Host otherwise);

}  // namespace rlock::redis
