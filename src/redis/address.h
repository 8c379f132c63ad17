// SPDX-License-Identifier: MIT
// Where the locks are, as a user writes it: a server, or several that know which server it is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "redis/endpoint.h"
#include "redis/url.h"

namespace rlock::redis {

struct Address {
  enum class Kind { server, sentinel };

  Kind kind = Kind::server;
  Endpoint server;              // sentinel: all but where it is
  std::vector<Host> sentinels;  // to be asked
  Endpoint sentinel;            // with which password
  std::string master;           // as the Sentinels call it

  // As a URL that parse_address reads back, without passwords. Safe to show and to log.
  std::string display() const;
};

// The addresses in `text`: one, or several with blanks between them, as parts of it. A blank that no address follows
// belongs to the one in front of it.
std::vector<std::string_view> split_addresses(std::string_view text);

// Reads what parse_endpoint does, and redis+sentinel://[user[:password]@]host[:port][,host[:port]...]/master[/db], with
// rediss+sentinel for TLS with all of them. User, password and database are those of the server. Sentinels are at port
// 26379 unless the address says otherwise.
// Errors (usage): anything else. The message never holds what may be a password.
Result<Address> parse_address(std::string_view url);

}  // namespace rlock::redis
