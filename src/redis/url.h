// SPDX-License-Identifier: MIT
// The parts of addresses (RFC 3986). Errors of all: usage; they never show what may be a password.
#pragma once

#include "base/error.h"

namespace rlock::redis {

inline constexpr int kMostDatabases = 1 << 24;

struct Host {
  std::string name;
  int port = 0;
  bool operator==(const Host&) const = default;

  // In the form that read_host reads.
  std::string display() const;
};

std::unexpected<Error> bad_address(const std::string& why);

// Writes the decoded text to `out`, which must be as large as `text`, and returns its length. `what`: for messages.
Result<std::size_t> percent_decode(std::string_view text, std::string_view what, char* out);
Result<std::string> percent_decoded(std::string_view text, std::string_view what);
// `also`: more bytes to encode.
std::string percent_encoded(std::string_view text, std::string_view also = "");

Result<int> number_in(std::string_view text, int least, int most, std::string_view what);

// The part before the host or path. It ends at the last @: if a password contains an @ that is not written as %40, the
// rest of it is not taken for a host, which would be contacted and shown. Null: there is none.
std::string_view userinfo_of(std::string_view rest);

// host, host:port, [IPv6], [IPv6]:port; `otherwise` has the defaults.
Result<Host> read_host(std::string_view text, Host otherwise);

}  // namespace rlock::redis
