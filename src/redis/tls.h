// SPDX-License-Identifier: MIT
// TLS over a connected socket, with OpenSSL 3.
//
// Before anything else is sent, the server's certificate is verified: its chain (RFC 5280 §6), and its name, which must
// match the host of the address, or TlsSettings::server_name (RFC 9525, so the common name of its subject does not
// count); for an IP address, the certificate must contain that address. TLS 1.2 or later. OpenSSL is not used in a
// process without such a connection. A forked process inherits the session; only one of the two may go on with it, and
// the other one closes its copy without telling the server.
#pragma once

#include <memory>
#include <span>

#include "base/clock.h"

struct ssl_st;

namespace rlock::redis {

struct TlsSettings {
  std::string ca;                // file or folder (as made by c_rehash(1)) of trusted authorities; empty: the system's
  std::string certificate, key;  // our own, PEM files; empty: none, or the key is in the certificate's file
  bool insecure = false;         // trust any server
  std::string server_name;       // that of the certificate; empty: the host of the address
};

// How long all certificates of a verified chain will still be valid, by our clock; negative: one has expired. The one
// that expires first belongs to an authority, or to the server itself.
struct CertificateLife {
  milliseconds lasts;
  bool of_authority = false;
};

// What an attempt to send or receive came to: so many bytes, or the event (poll(2)) that it has to wait for.
struct Attempt {
  std::size_t bytes = 0;
  short waits_for = 0;
};

class Tls {
 public:
  // For a server that must be `host`, or settings.server_name. Reads the files each time, because they may have been
  // renewed. Errors: config (a file of the settings, or no host name); system. REQUIRES: `fd` is connected, does not
  // block, and lives as long as the result.
  static Result<Tls> make(int fd, const TlsSettings& settings, const std::string& host);

  // Each is called again if it has to wait. The handshake comes first; receive() also reads messages of TLS itself,
  // such as session tickets, which come unasked. Errors: untrusted (the server's certificate cannot be verified, or it
  // refuses ours: with TLS 1.3 only after the handshake; it has then read nothing); unavailable (closed, no TLS).
  Result<Attempt> handshake() const;
  Result<Attempt> send(std::string_view bytes) const;
  Result<Attempt> receive(std::span<char> buffer) const;

  // Returns nothing if no date can be read.
  std::optional<CertificateLife> certificate_lasts() const;

 private:
  explicit Tls(ssl_st* ssl);
  // Calls one of OpenSSL's functions.
  template <class Call>
  Result<Attempt> attempt(Call call) const;
  // Has a branch for each of OpenSSL's errors. REQUIRES: errno is that of the failed call.
  Error failure(int why) const;
  Error not_trusted(long verified) const;

  std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_;
};

// Whether OpenSSL finds a file of that name in a folder of authorities: "5ed36f99.0" (openssl-rehash(1)).
bool is_hashed_name(std::string_view file);

// The library and its version, for people.
std::string tls_library();

}  // namespace rlock::redis
