// SPDX-License-Identifier: MIT
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/wait.h"

namespace rlock::redis {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  std::string text;  // "127.0.0.1:6379", "[::1]:6379"
};

// The addresses of a host, in the order of getaddrinfo(3). Errors: unavailable (no such host, not in
// time), interrupted.
Result<std::vector<Address>> resolve(const std::string& host, int port, const Until& until);

// A lookup that is given up leaves a thread behind, until its resolver gives up, too. Waits for all of them: from then
// on no thread of a lookup is left. Errors: system (one has not ended in time), interrupted.
Result<void> end_lookups(const Until& until);

}  // namespace rlock::redis
