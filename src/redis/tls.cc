// SPDX-License-Identifier: MIT
#include "redis/tls.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "base/wait.h"

namespace rlock::redis {
namespace {

using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
using Code = Error::Code;

constexpr const char* kClosed = "the server closed the connection";

// The systems' certificates of authorities: a folder in which OpenSSL finds one by its hash, which costs nothing, or
// else one file with all of them, which costs 40 to 70 ms.
constexpr const char* kFolders[] = {"/etc/ssl/certs", "/etc/pki/ca-trust/extracted/pem/directory-hash"};
constexpr const char* kBundles[] = {"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
                                    "/etc/ssl/certs/ca-certificates.crt"};

// Functions with which OpenSSL reads and writes a socket. Its own (BIO_s_socket) raise SIGPIPE.
int read_socket(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
  const ssize_t got = recv(fd, bytes, static_cast<std::size_t>(size), 0);
  if (got < 0 && failed_for_now()) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

int write_socket(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const auto fd = static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
  const ssize_t sent = ::send(fd, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && failed_for_now()) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

long control_socket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO* socket_bio(int fd) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_read(made, read_socket);
    BIO_meth_set_write(made, write_socket);
    BIO_meth_set_ctrl(made, control_socket);
    return made;
  }();
  BIO* bio = BIO_new(method);
  if (!bio) return nullptr;
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  BIO_set_init(bio, 1);
  return bio;
}

// The first of OpenSSL's errors, which is the cause; clears the others.
std::string first_error() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  if (error == 0) return "unknown error";
  if (ERR_GET_LIB(error) == ERR_LIB_SYS) return errno_text(ERR_GET_REASON(error));
  const char* reason = ERR_reason_error_string(error);
  if (!reason) return "error " + std::to_string(error);
  std::string text = reason;
#ifdef OPENSSL_IS_AWSLC
  // It says "NO_START_LINE".
  for (char& letter : text) letter = letter == '_' ? ' ' : static_cast<char>(std::tolower(letter));
#endif
  return text;
}

bool has_hashed_names(const char* folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder), closedir);
  while (const dirent* entry = entries ? readdir(entries.get()) : nullptr) {
    if (is_hashed_name(entry->d_name)) return true;
  }
  return false;
}

// Has no errors: without any authorities, the handshake fails with one.
void trust_system(SSL_CTX* context) {
  if (std::getenv(X509_get_default_cert_dir_env()) || std::getenv(X509_get_default_cert_file_env())) {
    SSL_CTX_set_default_verify_paths(context);
    return;
  }
  for (const char* folder : kFolders) {
    if (!has_hashed_names(folder)) continue;
    SSL_CTX_load_verify_locations(context, nullptr, folder);
    return;
  }
  for (const char* bundle : kBundles) {
    if (access(bundle, R_OK) == 0 && SSL_CTX_load_verify_locations(context, bundle, nullptr) == 1) return;
  }
}

std::unexpected<Error> bad_file(std::string_view what, const std::string& path) {
  return fail(Code::config, std::string(what) + " " + escaped(path) + ": " + first_error());
}

Result<void> trust(SSL_CTX* context, const std::string& ca) {
  if (ca.empty()) {
    trust_system(context);
    return {};
  }
  struct stat info{};
  if (stat(ca.c_str(), &info) != 0) return fail(Code::config, "--tls-ca " + escaped(ca) + ": " + errno_text(errno));
  const bool folder = S_ISDIR(info.st_mode);
  if (SSL_CTX_load_verify_locations(context, folder ? nullptr : ca.c_str(), folder ? ca.c_str() : nullptr) != 1)
    return bad_file("--tls-ca", ca);
  return {};
}

Result<void> add_own_certificate(SSL_CTX* context, const TlsSettings& settings) {
  if (settings.certificate.empty()) return {};
  const std::string& key = settings.key.empty() ? settings.certificate : settings.key;
  if (SSL_CTX_use_certificate_chain_file(context, settings.certificate.c_str()) != 1) {
    return bad_file("--tls-cert", settings.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return bad_file("--tls-key", key);
  }
  return {};
}

// A program that runs unattended cannot use a key with a passphrase.
int no_passphrase(char*, int, int, void*) { return -1; }

#ifdef OPENSSL_IS_AWSLC
// AWS-LC takes keys of any length, and SHA-1. Refuses what OpenSSL refuses at its level 2, which is that of Debian and
// Ubuntu (SSL_CTX_set_security_level(3)).
int refuse_weak(int good, X509_STORE_CTX* verified) {
  X509* certificate = X509_STORE_CTX_get_current_cert(verified);
  if (good != 1 || !certificate) return good;
  const EVP_PKEY* key = X509_get0_pubkey(certificate);
  const bool short_key = !key || (EVP_PKEY_base_id(key) == EVP_PKEY_RSA && EVP_PKEY_bits(key) < 2048);
  int digest = NID_undef, bits = 0;  // Ed25519 has neither
  X509_get_signature_info(certificate, &digest, nullptr, &bits, nullptr);
  const auto place = static_cast<std::size_t>(X509_STORE_CTX_get_error_depth(verified));
  const bool last = place + 1 == sk_X509_num(X509_STORE_CTX_get0_chain(verified));
  if (!short_key && (last || digest == NID_undef || bits >= 112)) return 1;
  X509_STORE_CTX_set_error(verified, short_key ? X509_V_ERR_CA_KEY_TOO_SMALL : X509_V_ERR_CA_MD_TOO_WEAK);
  return 0;
}

// As OpenSSL by default: Ed25519 and P-521, but no SHA-1.
void offer(SSL_CTX* context) {
  SSL_CTX_set1_groups_list(context, "X25519MLKEM768:X25519:P-256:P-384:P-521");
  SSL_CTX_set1_sigalgs_list(context,
                            "ed25519:ECDSA+SHA256:RSA-PSS+SHA256:RSA+SHA256:ECDSA+SHA384:RSA-PSS+SHA384:RSA+SHA384:"
                            "ECDSA+SHA512:RSA-PSS+SHA512:RSA+SHA512");
}
#else
constexpr SSL_verify_cb refuse_weak = nullptr;
void offer(SSL_CTX*) {}
#endif

Result<Context> make_context(const TlsSettings& settings) {
  // OpenSSL's configuration may name modules, which a statically linked program must not load.
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  Context context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  if (!context) return fail(Code::system, "TLS: " + first_error());
  offer(context.get());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_default_passwd_cb(context.get(), no_passphrase);
  if (settings.insecure) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_NONE, nullptr);
  } else {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, refuse_weak);
    // A certificate that is trusted needs no other, so a server's own may be named, too.
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context.get()), X509_V_FLAG_PARTIAL_CHAIN);
    RLOCK_TRY(trust(context.get(), settings.ca));
  }
  RLOCK_TRY(add_own_certificate(context.get(), settings));
  return context;
}

bool is_address(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 || inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

// As certificates have it: without the zone of an IPv6 address, and without the dot that ends a whole name in DNS.
std::string name_in_certificates(std::string host) {
  host = host.substr(0, host.find('%'));
  if (host.ends_with('.')) host.pop_back();
  return host;
}

// Requires a certificate for `host`, and tells the server which of its hosts is meant (SNI, RFC 6066 §3). OpenSSL would
// accept any certificate for an empty name, and those of all hosts in a domain for one that starts with a dot.
bool expect_host(SSL* ssl, const std::string& host) {
  if (host.empty() || host.starts_with('.')) return false;
  if (is_address(host)) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1;
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  return SSL_set1_host(ssl, host.c_str()) == 1 && SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
}

// TLS 1.2 has only the second alert for this, which may also mean something else.
bool wants_certificate(int reason) {
  return reason == SSL_AD_REASON_OFFSET + SSL_AD_CERTIFICATE_REQUIRED || reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE;
}

}  // namespace

Tls::Tls(ssl_st* ssl) : ssl_(ssl, SSL_free) {}

template <class Call>
Result<Attempt> Tls::attempt(Call call) const {
  ERR_clear_error();
  errno = 0;
  const int result = call(ssl_.get());
  if (result > 0) return Attempt{.bytes = static_cast<std::size_t>(result)};
  switch (const int why = SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ: return Attempt{.waits_for = POLLIN};
    case SSL_ERROR_WANT_WRITE: return Attempt{.waits_for = POLLOUT};
    default: return std::unexpected(failure(why));
  }
}

Error Tls::failure(int why) const {
  const int number = errno;
  if (why == SSL_ERROR_ZERO_RETURN) return {Code::unavailable, kClosed};
  const unsigned long error = ERR_peek_error();
  const bool said_nothing = why == SSL_ERROR_SYSCALL && error == 0;
  if (said_nothing) return {Code::unavailable, number == 0 ? kClosed : "TLS: " + errno_text(number)};
  if (const long verified = SSL_get_verify_result(ssl_.get());
      verified != X509_V_OK && ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    return not_trusted(verified);
  }
  const int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
  const std::string said = first_error();
  if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) return {Code::unavailable, kClosed};
  if (reason == SSL_R_WRONG_VERSION_NUMBER) {
    return {Code::unavailable,
            "TLS: the server does not speak it on this port; write redis:// for a server without TLS"};
  }
  if (wants_certificate(reason) && !SSL_get_certificate(ssl_.get())) {
    return {Code::untrusted, "TLS: the server requires a client certificate; give one (--tls-cert, --tls-key)"};
  }
  // An alert (RFC 8446 §6.2).
  if (reason >= SSL_AD_REASON_OFFSET) return {Code::untrusted, "TLS: the server refused us: " + said};
  return {Code::unavailable, "TLS: " + said};
}

Error Tls::not_trusted(long verified) const {
  ERR_clear_error();
  std::string reason = X509_verify_cert_error_string(verified), advice;
  switch (verified) {
    // AWS-LC has no text for these two.
    case X509_V_ERR_CA_KEY_TOO_SMALL: reason = "certificate key too weak"; break;
    case X509_V_ERR_CA_MD_TOO_WEAK: reason = "CA signature digest algorithm too weak"; break;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      advice = "; name the authority that has signed it (--tls-ca)";
      break;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      advice =
          "; use one of the names in it (subject alternative names) as the address, or behind a tunnel, name it "
          "(--tls-server-name)";
      break;
    default: break;
  }
  return {Code::untrusted, "TLS: the server's certificate is not trusted: " + reason + advice};
}

Result<Tls> Tls::make(int fd, const TlsSettings& settings, const std::string& host) {
  const std::string& meant = settings.server_name.empty() ? host : settings.server_name;
  const Context context = RLOCK_TRY(make_context(settings));
  Tls tls(SSL_new(context.get()));
  SSL* ssl = tls.ssl_.get();
  BIO* bio = ssl ? socket_bio(fd) : nullptr;
  if (!bio) return fail(Code::system, "TLS: " + first_error());
  SSL_set_bio(ssl, bio, bio);
  if (!expect_host(ssl, name_in_certificates(meant))) {
    return fail(Code::config, "TLS: " + in_quotes(meant) + " is not a host name");
  }
  return tls;
}

Result<Attempt> Tls::handshake() const { return attempt(SSL_connect); }

Result<Attempt> Tls::send(std::string_view bytes) const {
  return attempt([&](SSL* ssl) { return SSL_write(ssl, bytes.data(), static_cast<int>(bytes.size())); });
}

Result<Attempt> Tls::receive(std::span<char> buffer) const {
  return attempt([&](SSL* ssl) { return SSL_read(ssl, buffer.data(), static_cast<int>(buffer.size())); });
}

std::optional<CertificateLife> Tls::certificate_lasts() const {
  std::optional<CertificateLife> shortest;
  const auto look_at = [&](const X509* certificate, bool of_authority) {
    int days = 0, seconds = 0;
    if (!certificate || ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(certificate)) != 1) return;
    const milliseconds lasts = std::chrono::days(days) + std::chrono::seconds(seconds);
    if (!shortest || lasts < shortest->lasts) shortest = {lasts, of_authority};
  };
  look_at(SSL_get0_peer_certificate(ssl_.get()), false);
  // The server's own is the first. Without verification (--tls-insecure), there is no chain.
  const STACK_OF(X509)* const chain = SSL_get0_verified_chain(ssl_.get());
  for (int i = 1; std::cmp_less(i, sk_X509_num(chain)); ++i) look_at(sk_X509_value(chain, i), true);
  return shortest;
}

bool is_hashed_name(std::string_view file) {
  return file.size() > 9 && file[8] == '.' && file.find_first_not_of("0123456789abcdef") == 8;
}

std::string tls_library() {
#ifdef OPENSSL_IS_AWSLC
  return "AWS-LC " AWSLC_VERSION_NUMBER_STRING;
#else
  return std::string("OpenSSL ") + OpenSSL_version(OPENSSL_VERSION_STRING);
#endif
}

}  // namespace rlock::redis
