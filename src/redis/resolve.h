// SPDX-License-Identifier: MIT
// From the name of a host to its addresses, by c-ares: /etc/hosts and DNS, as resolv.conf(5) says.
//
// getaddrinfo(3) knows no deadline, needs a thread for one, and loads the modules of nsswitch.conf(5) at run time,
// which a program that is linked statically must not. A host that only such a module knows (mDNS, NIS, LDAP) has no
// address here.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/wait.h"

namespace rlock::redis {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  std::string text;  // "127.0.0.1:6379", "[::1]:6379"
};

// The addresses of a host: of each family in the order of RFC 6724, and those of IPv6 first where this host has one
// that reaches further than its link and its private networks. One that is a number is its own, and nobody is asked.
// Keeps nothing behind. Errors: unavailable (no such host, no answer, not in time), interrupted, system.
Result<std::vector<SocketAddress>> resolve(const std::string& host, int port, const Until& until);

// The library that does it, and its version: for people.
std::string resolver_library();

}  // namespace rlock::redis
