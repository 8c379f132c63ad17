// SPDX-License-Identifier: MIT
// Bytes to and from a server, with a deadline over everything.
//
// hiredis's own sockets have a time-out for each read(2), not for a whole exchange: a server that sends
// a byte a second would hold a renewal up for ever.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/unique_fd.h"
#include "redis/endpoint.h"

namespace rlock::redis {

class Transport {
 public:
  // Resolves and connects. Several addresses are tried in turn, each for an equal part of the time left.
  // A Unix socket of a local: server must belong to our own user (SO_PEERCRED, unix(7)).
  // Errors: unavailable (no such host, refused, not in time), interrupted, system. Each says the address.
  static Result<Transport> open(const Endpoint& endpoint, const Until& until);

  explicit Transport(UniqueFd connected) : fd_(std::move(connected)) {}
  UniqueFd release() { return std::move(fd_); }

  // Sends all of `bytes`.
  Result<void> send(std::string_view bytes, const Until& until);

  // Waits for bytes and returns those that are there, at least one.
  // Errors: unavailable (closed by the server, not in time), interrupted.
  Result<std::string_view> receive(const Until& until);

 private:
  UniqueFd fd_;
  std::string buffer_ = std::string(std::size_t{16} * 1024, '\0');
};

}  // namespace rlock::redis
