// SPDX-License-Identifier: MIT
#include "options/passwords.h"

#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>

#include "base/text.h"
#include "options/settings.h"
#include "options/trusted_file.h"
#include "run/password_command.h"

namespace rlock::cli {
namespace {

struct PasswordOfFile {
  Secret password;
  bool can_be_read_again;
};

// A name below /dev or /proc means a different file in another process.
bool names_the_same_to_all(const std::string& path) {
  return !path.starts_with("/dev/") && !path.starts_with("/proc/");
}

Result<PasswordOfFile> read_password(const std::string& path) {
  const auto bad_file = [&](const std::string& why) { return fail(Error::Code::config, escaped(path) + ": " + why); };
  auto opened = TrustedFile::open(path);
  if (!opened && access(path.c_str(), R_OK) != 0 && errno == EACCES) {
    opened.error().message += "; use a file of your own (chmod 600), or one that a group of yours can read (chmod 640)";
  }
  const auto file = RLOCK_TRY(std::move(opened));
  if (!file) return bad_file(errno_text(ENOENT));
  if (file->read_by_others()) {
    return bad_file("others may read it; run chmod 600 " + escaped(shell_word(path)) +
                    ", or pass the password in RLOCK_PASSWORD or through a pipe");
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
    return password ? std::move(password) : std::unexpected(std::move(password).error().in("password file"));
  };
  auto now = RLOCK_TRY(read());  // reports problems before connecting to a server
  endpoint.password.reset();
  if (!now.can_be_read_again) {
    endpoint.password = std::move(now.password);
    return {};
  }
  endpoint.password_source.emplace(
      [read](const Until&) -> Result<Secret> { return std::move(RLOCK_TRY(read()).password); });
  return {};
}

// Shown if the server refuses the user.
std::string came_from(const std::string& source) {
  return "the password came from " + source + ": correct it there, or the user in the address (redis://USER@host)";
}

// `ways`: the options and variables for a password. In a nested rlock the reason is usually another one.
std::string no_password(const std::string& ways) {
  if (!std::getenv("RLOCK_HELD")) return "no password was given: give one by " + ways;
  return "no password was given: this runs under `rlock run`, which does not pass passwords on to its command; put the "
         "password into a file (chmod 600), and give that in RLOCK_PASSWORD_FILE, or as password-file in the "
         "configuration file";
}

// Overwrites the variable, too, because unsetenv(3) alone would leave it in /proc/PID/environ.
std::optional<Secret> extract_variable(const char* name) {
  char* value = std::getenv(name);
  if (!value) return {};
  std::optional<Secret> secret;
  if (*value) secret.emplace(value);
  explicit_bzero(value, strlen(value));
  unsetenv(name);
  return secret;
}

// If several connections need the password at the same time, the command runs once, and all of them use its output.
redis::PasswordSource one_at_a_time(redis::PasswordSource source) {
  struct Shared {
    std::mutex mutex;
    const std::shared_ptr<int> asking = std::make_shared<int>();  // each caller has a copy
    std::optional<Secret> last;                                   // kept only while others wait for it
    TimePoint read_at{};
  };
  const auto shared = std::make_shared<Shared>();
  const bool starts_processes = source.starts_processes;
  return {[shared, source = std::move(source)](const Until& until) -> Result<Secret> {
            const TimePoint asked_at = BootClock::now();
            std::unique_lock guard(shared->mutex, std::defer_lock);
            const auto asking = shared->asking;  // released before `guard` unlocks
            while (!guard.try_lock()) {
              if (wait_for(-1, 0, until.at_most(10ms)) == WaitEnd::interrupted) {
                return fail(Error::Code::interrupted, "interrupted");
              }
              if (until.over()) return fail(Error::Code::unavailable, "the password command did not end in time");
            }
            const auto others_wait = [&] { return asking.use_count() > 2; };
            if (shared->last && shared->read_at > asked_at) {
              Secret password = *shared->last;
              if (!others_wait()) shared->last.reset();
              return password;
            }
            auto password = source.read(until);
            shared->last = password && others_wait() ? std::optional(*password) : std::nullopt;
            shared->read_at = BootClock::now();
            return password;
          },
          starts_processes};
}

// REQUIRES: passwords have been removed from the environment.
redis::PasswordSource source_of_command(const std::string& text) {
  const run::PasswordCommand command{text, environment_without_secrets({}), run::Folder::current()};
  return {[command](const Until& until) { return run::run_password_command(command, until); }, true};
}

}  // namespace

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text && *text;
}

std::string absolute(const std::string& path) {
  std::error_code unknown;
  const auto whole = path.empty() ? std::filesystem::path() : std::filesystem::absolute(path, unknown);
  return unknown ? path : whole.string();
}

void drop_weaker_source(CommonOptions& options) {
  auto& from = options.password_from;
  if (!from || from->source.rank <= kRankOfVariables) return;
  const bool by_addresses = !options.url_source.is_default() && options.url_source.rank < from->source.rank &&
                            std::ranges::none_of(
                                redis::split_addresses(options.url.text()),
                                [](std::string_view one) { return redis::password_in(one).empty(); });
  // REDISCLI_AUTH applies to every server, and would override the address.
  if (is_set("RLOCK_PASSWORD") || (by_addresses && !is_set("REDISCLI_AUTH"))) from.reset();
}

PasswordPlace password_place(const CommonOptions& options, const PasswordsThere& there) {
  if (options.password_from) return PasswordPlace::named;
  if (there.variable) return PasswordPlace::variable;
  if (there.redis_cli) return PasswordPlace::redis_cli;
  if (there.address) return PasswordPlace::address;
  return there.configured ? PasswordPlace::configured : PasswordPlace::none;
}

const ConfiguredUrl* configured_for(const CommonOptions& options, const redis::Address& address) {
  for (const ConfiguredUrl& one : options.configured_urls) {
    const auto configured = redis::parse_address(one.url.text());
    if (configured && configured->url() == address.url() && configured->server.password) return &one;
  }
  return nullptr;
}

Result<CommonPasswords> common_passwords(const CommonOptions& options, const redis::Address& first, bool several,
                                         int interrupt) {
  CommonPasswords common{.variable = extract_variable("RLOCK_PASSWORD"),
                         .redis_cli = extract_variable("REDISCLI_AUTH"),
                         .sentinel = extract_variable("RLOCK_SENTINEL_PASSWORD")};
  const auto& from = options.password_from;
  if (!from || first.server.kind == redis::Endpoint::Kind::local) return common;
  if (from->kind == PasswordFrom::Kind::command) {
    common.command = source_of_command(from->text);
    if (several) common.command = one_at_a_time(*common.command);
  }
  if (from->kind == PasswordFrom::Kind::terminal) {
    common.typed = RLOCK_TRY(ask_password(several ? "all servers" : first.server.display(), interrupt));
  }
  return common;
}

Result<void> add_password(redis::Endpoint& endpoint, const CommonOptions& options,
                          const std::optional<Secret>& configured, const CommonPasswords& common) {
  // A private server has no password, because only this user can reach it.
  if (endpoint.kind == redis::Endpoint::Kind::local) return {};
  const auto use = [&](const std::optional<Secret>& password, const std::string& source) -> Result<void> {
    endpoint.password = password;
    endpoint.about_password = came_from(source);
    return {};
  };
  const auto& from = options.password_from;
  switch (password_place(options, {common.variable.has_value(), common.redis_cli.has_value(),
                                   endpoint.password.has_value(), configured.has_value()})) {
    case PasswordPlace::named: break;
    case PasswordPlace::variable: return use(common.variable, "RLOCK_PASSWORD");
    case PasswordPlace::redis_cli: return use(common.redis_cli, "REDISCLI_AUTH");
    case PasswordPlace::address: return use(endpoint.password, "the address in " + options.url_source.text());
    case PasswordPlace::configured: return use(configured, "the address in the configuration file");
    case PasswordPlace::none:
      endpoint.about_password = no_password("--password-file, --password-command, --ask-password or RLOCK_PASSWORD");
      return {};
  }
  const std::string origin = from->source.text();
  switch (from->kind) {
    case PasswordFrom::Kind::terminal: return use(common.typed, origin);
    case PasswordFrom::Kind::command: endpoint.password_source = common.command; return use({}, origin);
    case PasswordFrom::Kind::file: break;
  }
  endpoint.about_password = came_from(origin + " " + escaped(from->text));
  return read_from_file(endpoint, from->text);
}

Result<void> add_sentinel_password(redis::Address& address, const CommonOptions& options,
                                   const CommonPasswords& common) {
  const auto& file = options.sentinel_password_file;
  address.sentinel.password = common.sentinel;
  address.sentinel.about_password = file ? came_from("--sentinel-password-file " + escaped(*file))
                                    : common.sentinel
                                        ? came_from("RLOCK_SENTINEL_PASSWORD")
                                        : no_password("--sentinel-password-file or RLOCK_SENTINEL_PASSWORD");
  if (address.kind != redis::Address::Kind::sentinel || !file) return {};
  return read_from_file(address.sentinel, *options.sentinel_password_file);
}

}  // namespace rlock::cli
