// SPDX-License-Identifier: MIT
#include "cli/server.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/log.h"
#include "base/text.h"
#include "cli/trusted_file.h"
#include "run/daemon.h"

namespace rlock::cli {
namespace {

bool has_password = false;  // for the server of client_for

constexpr std::size_t kLongestPassword = 4096;

Result<Secret> read_password(const std::string& path) {
  const auto bad_file = [&](const std::string& why) { return fail(Error::Code::config, escaped(path) + ": " + why); };
  const auto file = RLOCK_TRY(TrustedFile::open(path));
  if (!file) return bad_file(errno_text(ENOENT));
  if (file->read_by_others()) {
    return bad_file("others may read it; chmod 600 " + escaped(shell_word(path)) +
                    ", or give the password in RLOCK_PASSWORD or through a pipe");
  }
  Secret password = RLOCK_TRY(Secret::written(kLongestPassword, [&](std::span<char> out) -> Result<std::size_t> {
    std::size_t length = RLOCK_TRY(file->read(out));
    if (length > 0 && out[length - 1] == '\n') --length;
    if (length > 0 && out[length - 1] == '\r') --length;
    return length;
  }));
  if (password.text().empty()) return bad_file("empty");
  return password;
}

// Moves a secret out of the environment: unsetenv(3) alone would leave it in /proc/PID/environ.
std::optional<Secret> extract_variable(const char* name) {
  char* value = std::getenv(name);
  if (!value) return {};
  std::optional<Secret> secret;
  if (*value) secret.emplace(value);
  explicit_bzero(value, strlen(value));
  unsetenv(name);
  return secret;
}

void hide_password(char* url) {
  const std::string_view password = redis::password_in(url);
  if (!password.empty()) std::fill_n(url + (password.data() - url), password.size(), '*');
}

// The password that the configuration has for this very server. A nested rlock has the address from RLOCK_URL, without
// its password.
std::optional<Secret> configured_password(const CommonOptions& options, const Result<redis::Endpoint>& endpoint) {
  std::optional<Secret> password;
  for (Secret url : options.configured_urls) {
    const auto configured = redis::parse_endpoint(url.text());
    url.wipe();
    if (!configured || !endpoint || configured->display() != endpoint->display()) continue;
    if (!password) password = configured->password;
  }
  return password;
}

// The password file comes first, then RLOCK_PASSWORD, REDISCLI_AUTH, the address, and `configured`.
Result<void> add_password(redis::Endpoint& endpoint, const CommonOptions& options,
                          const std::optional<Secret>& configured) {
  const auto variable = extract_variable("RLOCK_PASSWORD"), redis_cli = extract_variable("REDISCLI_AUTH");
  // Ours alone: nobody else can reach it, so it has no password.
  if (endpoint.kind == redis::Endpoint::Kind::local) return {};
  if (!endpoint.password) endpoint.password = configured;
  if (redis_cli) endpoint.password = redis_cli;
  if (variable) endpoint.password = variable;
  if (!options.password_file) return {};
  auto password = read_password(*options.password_file);
  if (!password) return std::unexpected(std::move(password).error().in("password file"));
  endpoint.password = std::move(*password);
  return {};
}

// Nobody else may change a file that decides whom we trust, or read a key.
Result<void> check_tls_file(const std::string& path, bool secret) {
  std::error_code unknown;
  if (path.empty() || std::filesystem::is_directory(path, unknown)) return {};
  const auto file = RLOCK_TRY(TrustedFile::open(path));
  if (!file) return fail(Error::Code::config, escaped(path) + ": " + errno_text(ENOENT));
  if (!file->is_file()) return fail(Error::Code::config, escaped(path) + ": not a file, which can be read again");
  if (secret && file->read_by_others()) {
    return fail(Error::Code::config,
                escaped(path) + ": others may read the key; chmod 600 " + escaped(shell_word(path)));
  }
  return {};
}

Result<void> add_tls(redis::Endpoint& endpoint, const CommonOptions& options) {
  if (!endpoint.tls) {
    if (options.tls_option.empty()) return {};
    return fail(Error::Code::usage,
                options.tls_option + ": " + escaped(endpoint.display()) + " is no address for TLS; write rediss://");
  }
  const redis::TlsSettings& tls = options.tls;
  if (!tls.key.empty() && tls.certificate.empty()) {
    return fail(Error::Code::config, "tls-key without tls-cert: a key alone shows nothing");
  }
  if (tls.insecure) {
    log::warning(escaped(endpoint.display()) + ": --tls-insecure: the server is not verified, and may be anybody");
  }
  RLOCK_TRY(check_tls_file(tls.ca, false));
  RLOCK_TRY(check_tls_file(tls.certificate, false));
  RLOCK_TRY(check_tls_file(tls.key.empty() ? tls.certificate : tls.key, true));
  endpoint.tls = tls;
  return {};
}

Result<redis::Endpoint> endpoint_for(const CommonOptions& options) {
  Secret url = options.url;
  auto endpoint = redis::parse_endpoint(url.text());
  url.wipe();
  const auto configured = configured_password(options, endpoint);
  if (!endpoint) {
    if (!options.url_on_command_line) endpoint.error().code = Error::Code::config;
    return std::unexpected(std::move(endpoint).error().in(options.url_origin));
  }
  if (endpoint->password && options.url_on_command_line) {
    log::warning("a password on the command line can be seen by other users; use --password-file or RLOCK_PASSWORD");
  }
  if (char* variable = std::getenv("RLOCK_URL")) hide_password(variable);
  RLOCK_TRY(add_password(*endpoint, options, configured));
  RLOCK_TRY(add_tls(*endpoint, options));
  if (endpoint->kind == redis::Endpoint::Kind::local && endpoint->path.empty()) {
    endpoint->path = RLOCK_TRY(redis::LocalServer::own_folder());
  }
  return endpoint;
}

// The server needs to know nothing but its address. A configuration that its caller does not use, or has by a name that
// means nothing to another process (relative, /dev/fd/N), must not keep it from starting.
Result<UniqueFd> launch_server(const std::string& url, const std::string& log_path) {
  return run::launch_daemon({"rlock", "local", "serve", "--url", url, "--config", "/dev/null"}, log_path);
}

}  // namespace

Result<redis::Client> client_for(const CommonOptions& options, int interrupt) {
  redis::Endpoint endpoint = RLOCK_TRY(endpoint_for(options));
  if (endpoint.password) keep_memory_private();
  has_password = endpoint.password.has_value();
  log::debug("server " + escaped(endpoint.display()) + ", from " +
             (options.url_origin.empty() ? "the default" : options.url_origin));
  if (endpoint.kind == redis::Endpoint::Kind::local) {
    const Until until = Until{TimePoint::max(), interrupt}.at_most(options.timeout);
    RLOCK_TRY(redis::LocalServer(endpoint.path).ensure(launch_server, until));
  }
  return redis::Client(std::move(endpoint));
}

Result<redis::LocalServer> local_server_for(const CommonOptions& options) {
  const redis::Endpoint endpoint = RLOCK_TRY(endpoint_for(options));
  if (endpoint.kind != redis::Endpoint::Kind::local) {
    return fail(Error::Code::usage,
                escaped(endpoint.display()) + " is not a local: address; give --url local: or --url local:/dir");
  }
  return redis::LocalServer(endpoint.path);
}

Error with_advice(Error error) {
  if (error.code == Error::Code::denied && !has_password && std::getenv("RLOCK_HELD")) {
    error.message +=
        "; this runs under `rlock run`, which hands no password on to its command: put it into a file (chmod 600) and "
        "name that in RLOCK_PASSWORD_FILE, or as password-file in the configuration file";
  }
  return error;
}

void hide_passwords(int argc, char** argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) hide_password(argv[i]);
}

}  // namespace rlock::cli
