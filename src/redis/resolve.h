// SPDX-License-Identifier: MIT
// Resolves host names with c-ares: /etc/hosts and DNS, according to resolv.conf(5).
//
// getaddrinfo(3) has no deadline, so it would need a thread, and it loads the modules of nsswitch.conf(5) at run time,
// which a statically linked program must not do. Hosts that only such a module knows (mDNS, NIS, LDAP) are not found.
#pragma once

#include <sys/socket.h>

#include <vector>

#include "base/wait.h"

namespace rlock::redis {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  std::string text;  // "127.0.0.1:6379", "[::1]:6379"
};

// The addresses of a host, each family in the order of RFC 6724. IPv6 comes first if this host has an IPv6 address that
// reaches beyond its link and its private networks. A numeric address is its own result. Keeps no state. Errors:
// unavailable (no such host, no answer, not in time), interrupted, system.
Result<std::vector<SocketAddress>> resolve(const std::string& host, int port, const Until& until);

// The library and its version, for people.
std::string resolver_library();

}  // namespace rlock::redis
