// SPDX-License-Identifier: MIT
// TLS over a connected socket, by OpenSSL 3.
//
// The server's certificate is verified before anything else is sent: its chain (RFC 5280 §6), and its name against the
// host of the address (RFC 9525), which for an IP address is an IP address in the certificate. TLS 1.2 or later.
// Nothing of OpenSSL runs in a process that has no such connection. A process that is forked inherits a session; only
// one of the two may go on with it, and the other one closes its copy without a word to the server.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "base/wait.h"

namespace rlock::redis {

struct TlsSettings {
  std::string ca;                // file or folder (as c_rehash(1) makes it) of those to trust; empty: the system's
  std::string certificate, key;  // our own, PEM files; empty: none. A key may be in the file of the certificate.
  bool insecure = false;         // trust whoever answers
};

// For how long all certificates of a verified chain will still be valid, by our clock; negative: one has expired. The
// one that expires first is that of an authority, or the server's own.
struct CertificateLife {
  milliseconds lasts;
  bool of_authority = false;
};

class Tls {
 public:
  // The handshake, with a server that has to be `host`. The files are read each time, as they may have been renewed.
  // Errors: untrusted (the certificate does not stand the test; the server does not take ours); unavailable (no answer
  // in time, closed, no TLS spoken there); config (a file of the settings); interrupted; system.
  // REQUIRES: `fd` is connected, does not block, and lives as long as the result.
  static Result<std::unique_ptr<Tls>> connect(int fd, const TlsSettings& settings, const std::string& host,
                                              const Until& until);
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;
  ~Tls();

  // As those of Transport. Also untrusted: a server of TLS 1.3 refuses our certificate only after the handshake; it has
  // read nothing then.
  Result<void> check_idle();
  Result<void> send(std::string_view bytes, const Until& until);
  Result<std::size_t> receive(std::span<char> buffer, const Until& until);

  // None: nobody can read a date.
  std::optional<CertificateLife> certificate_lasts() const;

 private:
  struct Session;
  explicit Tls(std::unique_ptr<Session> session);

  std::unique_ptr<Session> session_;
};

// The library that does it, and its version: for people.
std::string tls_library();

}  // namespace rlock::redis
