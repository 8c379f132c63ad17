// SPDX-License-Identifier: MIT
// Bytes to and from a server, with a deadline over everything.
//
// hiredis's own sockets have a time-out for each read(2), not for a whole exchange: a server that sends
// a byte a second would hold a renewal up for ever.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/unique_fd.h"
#include "base/wait.h"
#include "redis/endpoint.h"
#include "redis/tls.h"

namespace rlock::redis {

class Transport {
 public:
  // Resolves and connects, with TLS where the endpoint asks for it. Several addresses are tried in turn, each for an
  // equal part of the time left. A Unix socket of a local: server must belong to our own user (SO_PEERCRED, unix(7)).
  // Errors: unavailable (no such host, refused, not in time), interrupted, system; those of Tls::connect. Each says the
  // address.
  static Result<Transport> open(const Endpoint& endpoint, const Until& until);

  explicit Transport(UniqueFd connected) : fd_(std::move(connected)) {}
  int fd() const { return fd_.get(); }
  // For another process. Empty: it is nobody else's to use, and closed.
  UniqueFd release();

  // For a connection on which no reply is due: whether it still stands, as far as this side knows. A server that has
  // ended, or was restarted, has closed it; what is sent then is executed by nobody, and send() does not notice.
  // Errors: unavailable (closed by the server), protocol (bytes that nobody has asked for); those of Tls.
  Result<void> check_idle() const;

  // Sends all of `bytes`. After an error the last of them have not been sent.
  // Errors: unavailable (closed by the server, not in time), interrupted; those of Tls.
  Result<void> send(std::string_view bytes, const Until& until);

  // Waits for bytes and returns those that are there, at least one.
  // Errors: unavailable (closed by the server, not in time), interrupted; those of Tls.
  Result<std::string_view> receive(const Until& until);

  // As Tls::certificate_lasts(); none: no TLS.
  std::optional<CertificateLife> certificate_lasts() const { return tls_ ? tls_->certificate_lasts() : std::nullopt; }

 private:
  UniqueFd fd_;
  std::unique_ptr<Tls> tls_;                      // over fd_; null: plain text
  std::string buffer_ = std::string(4096, '\0');  // a page; most replies have less than 100 bytes
};

}  // namespace rlock::redis
