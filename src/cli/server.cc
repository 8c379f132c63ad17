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
#include "cli/ask_password.h"
#include "cli/environment.h"
#include "cli/trusted_file.h"
#include "run/daemon.h"
#include "run/password_command.h"

namespace rlock::cli {
namespace {

bool has_password = false;  // for the server of client_for

struct PasswordOfFile {
  Secret password;
  bool can_be_read_again;
};

// A name below /dev or /proc means something else to another process.
bool names_the_same_to_all(const std::string& path) {
  return !path.starts_with("/dev/") && !path.starts_with("/proc/");
}

// Guards and keepers leave the folder, and read the files again.
std::string absolute(const std::string& path) {
  std::error_code unknown;
  const auto whole = path.empty() ? std::filesystem::path() : std::filesystem::absolute(path, unknown);
  return unknown ? path : whole.string();
}

Result<PasswordOfFile> read_password(const std::string& path) {
  const auto bad_file = [&](const std::string& why) { return fail(Error::Code::config, escaped(path) + ": " + why); };
  const auto file = RLOCK_TRY(TrustedFile::open(path));
  if (!file) return bad_file(errno_text(ENOENT));
  if (file->read_by_others()) {
    return bad_file("others may read it; chmod 600 " + escaped(shell_word(path)) +
                    ", or give the password in RLOCK_PASSWORD or through a pipe");
  }
  Secret password = RLOCK_TRY(Secret::written(Secret::kLongest, [&](std::span<char> out) -> Result<std::size_t> {
    const std::size_t length = RLOCK_TRY(file->read(out));
    return without_newline({out.data(), length}).size();
  }));
  if (password.text().empty()) return bad_file("empty");
  return PasswordOfFile{std::move(password), file->is_file() && names_the_same_to_all(path)};
}

Result<void> read_from_file(redis::Endpoint& endpoint, const std::string& named) {
  const std::string path = absolute(named);
  const auto read = [path]() {
    auto password = read_password(path);
    if (!password) password.error() = std::move(password).error().in("password file");
    return password;
  };
  auto now = RLOCK_TRY(read());  // what is wrong with it is said before a server is spoken to
  endpoint.password.reset();
  if (!now.can_be_read_again) {
    endpoint.password = std::move(now.password);
    return {};
  }
  endpoint.password_source.emplace(
      [read](const Until&) -> Result<Secret> { return std::move(RLOCK_TRY(read()).password); });
  return {};
}

// REQUIRES: the variables that hold passwords are gone.
void read_from_command(redis::Endpoint& endpoint, const std::string& text) {
  std::error_code unknown;
  const run::PasswordCommand command{text, environment_without_secrets({}),
                                     std::filesystem::current_path(unknown).string()};
  endpoint.password.reset();
  endpoint.password_source.emplace([command](const Until& until) { return run::run_password_command(command, until); },
                                   true);
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
std::optional<Secret> configured_password(const CommonOptions& options, const Result<redis::Address>& address) {
  std::optional<Secret> password;
  for (Secret url : options.configured_urls) {
    const auto configured = redis::parse_address(url.text());
    url.wipe();
    if (!configured || !address || configured->display() != address->display()) continue;
    if (!password) password = configured->server.password;
  }
  return password;
}

// File, command and terminal come first, then RLOCK_PASSWORD, REDISCLI_AUTH, the address, and `configured`.
Result<void> add_password(redis::Endpoint& endpoint, const CommonOptions& options,
                          const std::optional<Secret>& configured, int interrupt) {
  const auto variable = extract_variable("RLOCK_PASSWORD"), redis_cli = extract_variable("REDISCLI_AUTH");
  // Ours alone: nobody else can reach it, so it has no password.
  if (endpoint.kind == redis::Endpoint::Kind::local) return {};
  if (!endpoint.password) endpoint.password = configured;
  if (redis_cli) endpoint.password = redis_cli;
  if (variable) endpoint.password = variable;
  const auto& from = options.password_from;
  if (!from) return {};
  switch (from->kind) {
    case PasswordFrom::Kind::file: return read_from_file(endpoint, from->text);
    case PasswordFrom::Kind::command: read_from_command(endpoint, from->text); break;
    case PasswordFrom::Kind::terminal:
      endpoint.password = RLOCK_TRY(ask_password(endpoint.display(), interrupt));
      break;
  }
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
  endpoint.tls = redis::TlsSettings{absolute(tls.ca), absolute(tls.certificate), absolute(tls.key), tls.insecure};
  return {};
}

// Those of Sentinels are users of their own.
Result<void> add_sentinel_password(redis::Address& address, const CommonOptions& options) {
  address.sentinel.password = extract_variable("RLOCK_SENTINEL_PASSWORD");
  if (address.kind != redis::Address::Kind::sentinel || !options.sentinel_password_file) return {};
  return read_from_file(address.sentinel, *options.sentinel_password_file);
}

Result<redis::Address> address_for(const CommonOptions& options, int interrupt) {
  Secret url = options.url;
  auto address = redis::parse_address(url.text());
  url.wipe();
  const auto configured = configured_password(options, address);
  if (!address) {
    if (!options.url_on_command_line) address.error().code = Error::Code::config;
    return std::unexpected(std::move(address).error().in(options.url_origin));
  }
  redis::Endpoint& server = address->server;
  if (server.password && options.url_on_command_line) {
    log::warning("a password on the command line can be seen by other users; use --password-file or RLOCK_PASSWORD");
  }
  if (char* variable = std::getenv("RLOCK_URL")) hide_password(variable);
  RLOCK_TRY(add_password(server, options, configured, interrupt));
  RLOCK_TRY(add_sentinel_password(*address, options));
  RLOCK_TRY(add_tls(server, options));
  if (server.kind == redis::Endpoint::Kind::local && server.path.empty()) {
    server.path = RLOCK_TRY(redis::LocalServer::own_folder());
  }
  return address;
}

// The server needs to know nothing but its address. A configuration that its caller does not use, or has by a name that
// means nothing to another process (relative, /dev/fd/N), must not keep it from starting.
Result<UniqueFd> launch_server(const std::string& url, const std::string& log_path) {
  return run::launch_daemon({"rlock", "local", "serve", "--url", url, "--config", "/dev/null"}, log_path);
}

}  // namespace

Result<redis::Client> client_for(const CommonOptions& options, int interrupt) {
  redis::Address address = RLOCK_TRY(address_for(options, interrupt));
  has_password = address.server.has_password();
  if (has_password || address.sentinel.has_password()) keep_memory_private();
  log::debug("server " + escaped(address.display()) + ", from " +
             (options.url_origin.empty() ? "the default" : options.url_origin));
  if (address.server.kind == redis::Endpoint::Kind::local) {
    const Until until = Until{TimePoint::max(), interrupt}.at_most(options.timeout);
    RLOCK_TRY(redis::LocalServer(address.server.path).ensure(launch_server, until));
  }
  return redis::Client(std::move(address));
}

Result<redis::Client> client_for(const NamingOptions& options, int interrupt) {
  redis::Client client = RLOCK_TRY(client_for(static_cast<const CommonOptions&>(options), interrupt));
  constexpr std::size_t kMost = 200;  // of characters: CLIENT LIST is for people
  std::string name = "rlock:";
  for (const lock::LockName& lock : options.names) {
    if (name.size() > kMost) break;
    name += (name.ends_with(':') ? "" : ",") + redis::percent_encoded(lock.text()).substr(0, kMost);
  }
  client.call_itself(std::move(name));
  return client;
}

Result<redis::Client> client_for(const LockingOptions& options, int interrupt) {
  redis::Client client = RLOCK_TRY(client_for(static_cast<const NamingOptions&>(options), interrupt));
  if (!options.wait.eviction) lock::refuse_eviction(client);
  return client;
}

Result<redis::LocalServer> local_server_for(const CommonOptions& options) {
  const redis::Address address = RLOCK_TRY(address_for(options, -1));
  if (address.server.kind != redis::Endpoint::Kind::local) {
    return fail(Error::Code::usage,
                escaped(address.display()) + " is not a local: address; give --url local: or --url local:/dir");
  }
  return redis::LocalServer(address.server.path);
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
