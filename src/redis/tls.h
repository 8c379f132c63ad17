// SPDX-License-Identifier: MIT
// TLS over a connected socket, with OpenSSL 3.
//
// Before anything else is sent, the server's certificate is verified: its chain (RFC 5280 §6), and its name, which must
// match the host of the address (RFC 9525); for an IP address, the certificate must contain that address. TLS 1.2 or
// later. OpenSSL is not used in a process without such a connection. A forked process inherits the session; only one of
// the two may go on with it, and the other one closes its copy without telling the server.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "base/wait.h"

namespace rlock::redis {

struct TlsSettings {
  std::string ca;                // file or folder (as made by c_rehash(1)) of trusted authorities; empty: the system's
  std::string certificate, key;  // our own, PEM files; empty: none, or the key is in the certificate's file
  bool insecure = false;         // trust any server
};

// How long all certificates of a verified chain will still be valid, by our clock; negative: one has expired. The one
// that expires first belongs to an authority, or to the server itself.
struct CertificateLife {
  milliseconds lasts;
  bool of_authority = false;
};

class Tls {
 public:
  // The handshake with a server that must be `host`. Reads the files each time, because they may have been renewed.
  // Errors: untrusted (the server's certificate cannot be verified, or it refuses ours); unavailable (no answer in
  // time, closed, no TLS); config (a file of the settings); interrupted; system. REQUIRES: `fd` is connected, does not
  // block, and lives as long as the result.
  static Result<std::unique_ptr<Tls>> connect(int fd, const TlsSettings& settings, const std::string& host,
                                              const Until& until);
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;
  ~Tls();

  // As those of Transport. Also untrusted, because with TLS 1.3 a server refuses our certificate only after the
  // handshake; it has then read nothing.
  Result<void> check_idle();
  Result<void> send(std::string_view bytes, const Until& until);
  Result<std::size_t> receive(std::span<char> buffer, const Until& until);

  // None: no date can be read.
  std::optional<CertificateLife> certificate_lasts() const;

 private:
  struct Session;
  explicit Tls(std::unique_ptr<Session> session);

  std::unique_ptr<Session> session_;
};

// The library and its version, for people.
std::string tls_library();

}  // namespace rlock::redis
