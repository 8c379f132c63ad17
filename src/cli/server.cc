// SPDX-License-Identifier: MIT
#include "cli/server.h"

#include <string.h>

#include <cstdlib>
#include <filesystem>

#include "base/log.h"
#include "base/trust.h"
#include "options/passwords.h"
#include "options/trusted_file.h"
#include "verbs/epoch.h"

namespace rlock::cli {
namespace {

// `urls`: one address or several.
void hide_password(char* urls) {
  for (const std::string_view url : redis::split_addresses(urls)) {
    const std::string_view password = redis::secret_in(url);
    if (!password.empty()) std::fill_n(urls + (password.data() - urls), password.size(), '*');
  }
}

Result<void> check_folder(const char* option, const std::string& path) {
  auto ours = only_ours_to_lead_to(path + "/.");
  if (ours) ours = only_ours_to_change(path);
  std::error_code failed;
  for (auto file = std::filesystem::directory_iterator(path, failed); ours && !failed && file != end(file);
       file.increment(failed)) {
    if (!redis::is_hashed_name(file->path().filename().string())) continue;  // OpenSSL does not read it
    if (const auto opened = TrustedFile::open(file->path().string()); !opened) ours = std::unexpected(opened.error());
  }
  if (ours && failed) ours = fail(Error::Code::config, escaped(path) + ": " + failed.message());
  return ours ? ours : std::unexpected(std::move(ours).error().in(option));
}

// Other users must not be able to change certificates, or to read a key.
Result<void> check_tls_file(const char* option, const std::string& path, bool secret) {
  if (path.empty()) return {};
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) return check_folder(option, path);
  const auto bad_file = [&](const std::string& why) {
    return fail(Error::Code::config, std::string(option) + " " + escaped(path) + ": " + why);
  };
  auto opened = TrustedFile::open(path);
  if (!opened) return std::unexpected(std::move(opened).error().in(option));
  const auto& file = *opened;
  if (!file) return bad_file(errno_text(ENOENT));
  if (!file->can_be_opened_again()) return bad_file("it cannot be read again; give the path of a regular file");
  if (secret && file->read_by_others()) {
    return bad_file("others may read the key; run chmod 600 " + escaped(shell_word(path)));
  }
  return {};
}

Result<void> add_tls(redis::Endpoint& endpoint, const CommonOptions& options) {
  if (!endpoint.tls) return {};
  const redis::TlsSettings& tls = options.tls;
  if (!tls.key.empty() && tls.certificate.empty()) return fail(Error::Code::config, "--tls-key needs --tls-cert");
  if (tls.insecure) {
    log::warning(escaped(endpoint.display()) + ": --tls-insecure: the server is not verified, and may be an impostor");
  }
  RLOCK_TRY(check_tls_file("--tls-ca", tls.ca, false));
  RLOCK_TRY(check_tls_file("--tls-cert", tls.certificate, false));
  const bool apart = !tls.key.empty();
  RLOCK_TRY(check_tls_file(apart ? "--tls-key" : "--tls-key is not given, and --tls-cert",
                           apart ? tls.key : tls.certificate, true));
  endpoint.tls =
      redis::TlsSettings{absolute(tls.ca), absolute(tls.certificate), absolute(tls.key), tls.insecure, tls.server_name};
  return {};
}

// Only some of the servers of a quorum may use TLS.
Result<void> check_tls_options(const std::vector<redis::Address>& addresses, const CommonOptions& options) {
  const auto over_tls = [](const redis::Address& one) { return one.server.tls.has_value(); };
  if (options.tls_option.empty() || std::ranges::any_of(addresses, over_tls)) return {};
  return fail(Error::Code::usage, options.tls_option + ": " + escaped(addresses.front().server.display()) +
                                      " does not use TLS; write rediss://");
}

// Several addresses form a quorum.
Result<void> check_quorum(const std::vector<redis::Address>& addresses) {
  if (addresses.size() == 1) return {};
  const auto bad = [](const std::string& why) { return fail(Error::Code::usage, why); };
  if (addresses.size() % 2 == 0) {
    return bad(std::to_string(addresses.size()) +
               " addresses: a quorum needs an odd number of independent servers, at least three; remove or add one");
  }
  for (auto one = addresses.begin(); one != addresses.end(); ++one) {
    const std::string shown = escaped(one->display());
    const bool twice =
        std::any_of(addresses.begin(), one, [&](const auto& other) { return other.display() == one->display(); });
    const std::string why =
        one->server.kind == redis::Endpoint::Kind::local ? ": a private server of this host cannot be part of a quorum"
        : one->kind == redis::Address::Kind::cluster
            ? ": a cluster cannot be part of a quorum, because each server of a quorum must keep all locks"
        : one->kind == redis::Address::Kind::sentinel ? ": a master behind Sentinels cannot be part of a quorum, "
                                                        "because a replica that replaces it may lack some "
                                                        "of its locks"
        : twice                                       ? " is given twice, but each server has one vote"
                                                      : "";
    if (!why.empty()) return bad(shown + why);
  }
  return {};
}

Result<std::vector<redis::Address>> parse_addresses(const CommonOptions& options) {
  auto addresses = redis::parse_addresses(options.url.text());
  const auto fine = addresses ? check_quorum(*addresses) : std::unexpected(addresses.error());
  return fine ? std::move(addresses) : std::unexpected(blame(fine.error(), options.url_source));
}

Result<std::vector<redis::Address>> addresses_for(CommonOptions& options, int interrupt) {
  auto parsed = parse_addresses(options);
  if (char* variable = std::getenv("RLOCK_URL")) hide_password(variable);
  options.url.wipe();
  auto addresses = RLOCK_TRY(std::move(parsed));
  if (options.url_source.on_command_line() &&
      std::ranges::any_of(addresses, [](const auto& one) { return one.server.password.has_value(); })) {
    log::warning("a password on the command line can be seen by other users; use --password-file or RLOCK_PASSWORD");
  }
  RLOCK_TRY(check_tls_options(addresses, options));
  RLOCK_TRY(add_passwords(addresses, options, interrupt));
  for (redis::Address& address : addresses) {
    RLOCK_TRY(add_tls(address.server, options));
    if (address.server.kind == redis::Endpoint::Kind::local && address.server.path.empty()) {
      address.server.path = RLOCK_TRY(redis::LocalServer::own_folder());
    }
  }
  return addresses;
}

// With the default address, each host uses its own server, so jobs on different hosts do not exclude each other. That
// happens easily, because sudo, cron and systemd do not pass RLOCK_URL on. For commands that take no locks, warn only
// under sudo, where the user would look at the wrong server.
void warn_of_default_server(const CommonOptions& options, bool takes_locks) {
  const bool by_sudo = std::getenv("SUDO_USER") != nullptr;
  if (!options.url_source.is_default() || (!takes_locks && !by_sudo)) return;
  const std::string server(options.url.text());
  log::warning("no server was given, so rlock uses " + server +
               ", which may be a different server on each host; give it with --url, RLOCK_URL" +
               (by_sudo ? " (which sudo removes: use sudo --preserve-env=RLOCK_URL)" : "") +
               ", or by url = \"redis://HOST\" in /etc/rlock/rlock.toml");
}

constexpr milliseconds kTimeToSay = 100ms;

// The path of the private server that runs; "" if it does not say so, or if others could change it.
std::string program_of(redis::Connection& server, const Until& until) {
  const auto sent = server.send({"INFO", "server"}, until);
  const auto reply = sent ? server.receive(until) : std::unexpected(sent.error());
  const std::string path = redis::ServerInfo(reply ? reply->as_text() : "").text("executable");
  return !path.empty() && only_ours_to_lead_to(path) && only_ours_to_change(path) ? path : "";
}

std::string client_name(const std::vector<lock::LockName>& locks) {
  constexpr std::size_t kMost = 200;  // keep CLIENT LIST readable
  const auto encoded = [](const lock::LockName& lock) { return redis::percent_encoded(lock.text()); };
  return "rlock:" + joined(locks, ",", encoded).substr(0, kMost);
}

// `naming`: these options, if they name locks.
Result<lock::Servers> servers_for(CommonOptions& options, const NamingOptions* naming, int interrupt,
                                  bool takes_locks = false) {
  const std::optional<bool> guard = naming ? naming->epoch_guard : std::nullopt;
  warn_of_default_server(options, takes_locks);
  std::vector<redis::Address> addresses = RLOCK_TRY(addresses_for(options, interrupt));
  for (redis::Address& address : addresses) {
    if (address.server.has_password() || address.sentinel.has_password()) keep_memory_private();
    log::debug("server " + escaped(address.display()) + ", from " +
               (options.url_source.is_default() ? "the default" : options.url_source.text()));
    if (address.server.kind == redis::Endpoint::Kind::local) {
      const Until until = Until{TimePoint::max(), interrupt}.at_most(options.timeout);
      address.server.new_data = redis::format_command(lock::first_epoch());
      RLOCK_TRY(redis::LocalServer(address.server.path).prepare());
      auto there = RLOCK_TRY(redis::Connection::open(address.server, until));
      address.server.program = program_of(there, until.at_most(kTimeToSay));
    }
  }
  if (guard.value_or(false) && addresses.front().kind == redis::Address::Kind::cluster) {
    return fail(Error::Code::usage, "--epoch-guard: " + escaped(addresses.front().display()) +
                                        ": a cluster has no epoch guard, because a script reaches only the keys of one "
                                        "hash slot; use --wait-replicas instead");
  }
  lock::Servers servers(std::move(addresses), guard);
  if (naming) servers.call_themselves(client_name(naming->names));
  return servers;
}

}  // namespace

Result<lock::Servers> client_for(CommonOptions& options, int interrupt) {
  return servers_for(options, nullptr, interrupt);
}

Result<lock::Servers> client_for(NamingOptions& options, int interrupt) {
  return servers_for(options, &options, interrupt);
}

Result<lock::Servers> client_for(LockingOptions& options, int interrupt) {
  lock::Servers servers = RLOCK_TRY(servers_for(options, &options, interrupt, true));
  if (!options.eviction) servers.refuse_eviction();
  return servers;
}

Result<redis::LocalServer> local_server_for(CommonOptions& options) {
  const redis::Address address = RLOCK_TRY(addresses_for(options, -1)).front();
  if (address.server.kind != redis::Endpoint::Kind::local) {
    return fail(Error::Code::usage,
                escaped(address.display()) + " is not a local: address; give --url local: or --url local:/dir");
  }
  return redis::LocalServer(address.server.path);
}

Error with_advice(Error error, const CommonOptions& options) {
  if (error.code != Error::Code::unavailable) return error;
  if (options.url_source.is_default()) {
    error.message += "; give the address of Redis with --url or RLOCK_URL, or try --url local:";
  } else if (error.message.ends_with(errno_text(ECONNREFUSED)) || error.message.ends_with(errno_text(ENOENT))) {
    error.message += "; no server listens there: start it, or correct the address";
  }
  return error;
}

void hide_passwords(int argc, char** argv) {
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) hide_password(argv[i]);
}

lock::AncestorLocks held_by_ancestors() {
  const char* held = std::getenv("RLOCK_HELD");
  return lock::AncestorLocks::parse(held ? held : "");
}

lock::HolderInfo describe_self(std::string command, const LockingOptions& options) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const auto account = account_of(geteuid());
  lock::HolderInfo self = options.self;
  self.host = host;
  self.user = account ? account->name : std::to_string(geteuid());
  self.command = std::move(command);
  self.pid = getpid();
  self.in_history = options.history;
  return self;
}

std::string asker(std::string_view with) {
  static const lock::HolderInfo self = describe_self("");  // once: the user may be in a slow directory
  return self.user + "@" + self.host + " (" + std::string(with) + ")";
}

}  // namespace rlock::cli
