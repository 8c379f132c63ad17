// SPDX-License-Identifier: MIT
// Sends bytes to a server and receives them, with one deadline for everything.
//
// hiredis's own sockets have a time-out for each read(2), so a server that sends a byte a second could delay a renewal
// forever.
#pragma once

#include "redis/endpoint.h"
#include "redis/tls.h"

namespace rlock::redis {

class Transport {
 public:
  // Resolves and connects, with TLS if the endpoint asks for it. Tries several addresses in turn, each for an equal
  // share of the remaining time. The Unix socket of a local: server must belong to our own user (SO_PEERCRED, unix(7)).
  // Errors, with the address: unavailable (no such host, refused, not in time), interrupted, system; those of
  // Tls::connect.
  static Result<Transport> open(const Endpoint& endpoint, const Until& until);

  explicit Transport(UniqueFd connected) : fd_(std::move(connected)) {}
  int fd() const { return fd_.get(); }
  // For another process. Empty: it cannot be used there, and is closed.
  UniqueFd release();

  // For a connection on which no reply is due: whether it is still open, as far as this side knows. A server that has
  // ended or restarted has closed it; send() would not notice, and nothing would be executed. Errors: unavailable
  // (closed by the server), protocol (unasked bytes); those of Tls.
  Result<void> check_idle() const;

  // Sends all of `bytes`. After an error, the last of them were not sent.
  // Errors: unavailable (closed by the server, not in time), interrupted; those of Tls.
  Result<void> send(std::string_view bytes, const Until& until);

  // Waits for bytes, and returns at least one.
  // Errors: unavailable (closed by the server, not in time), interrupted; those of Tls.
  Result<std::string_view> receive(const Until& until);

  // As Tls::certificate_lasts(); none: no TLS.
  std::optional<CertificateLife> certificate_lasts() const { return tls_ ? tls_->certificate_lasts() : std::nullopt; }

 private:
  UniqueFd fd_;
  std::unique_ptr<Tls> tls_;                      // over fd_; null: plain text
  std::string buffer_ = std::string(4096, '\0');  // a page; most replies are shorter than 100 bytes
};

}  // namespace rlock::redis
