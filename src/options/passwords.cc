// SPDX-License-Identifier: MIT
#include "options/passwords.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <termios.h>

#include <cstdlib>
#include <filesystem>

#include "base/log.h"
#include "options/settings.h"
#include "options/trusted_file.h"
#include "run/password_command.h"

namespace rlock::cli {
namespace {

// Variables with a password for all servers.
constexpr const char* kPasswordVariables[] = {"RLOCK_PASSWORD", "REDISCLI_AUTH"};

struct PasswordOfFile {
  Secret password;
  bool can_be_read_again;
};

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
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    const std::string_view text = without_newline({out.data(), RLOCK_TRY(file->read(out))});
    const std::size_t begin = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    std::copy(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), out.begin());
    return text.size() - begin;
  }));
  if (password.text().empty()) return bad_file("empty");
  return PasswordOfFile{std::move(password), file->can_be_opened_again()};
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
std::string came_from(const std::string& source, const std::string& user = "in the address (redis://USER@host)") {
  return "the password came from " + source + ": correct it there, or the user " + user;
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
  // A Secret of Kubernetes made with echo, and a block of YAML, end with a line break.
  const std::string_view text = without_newline(value);
  if (text.empty()) {
    log::warning(std::string(name) + " is empty, so rlock uses no password from it");
  } else {
    secret.emplace(text);
  }
  overwrite(value, strlen(value));
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
              if (wait_for(-1, 0, until.at_most(10ms)) == WaitEnd::interrupted) return interrupted();
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

std::unexpected<Error> cannot_ask(const std::string& why) { return fail(Error::Code::usage, "--ask-password: " + why); }

std::unexpected<Error> no_terminal() {
  return cannot_ask("there is no terminal; use --password-file or --password-command");
}

// The modes without echo, and without Ctrl-Z, which would leave the shell without echo.
termios silent(termios modes) {
  modes.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHOE | ECHOK | ECHONL);
  // Another program may have left the terminal in raw mode.
  modes.c_lflag |= ICANON | ISIG;
  modes.c_iflag |= ICRNL;
  modes.c_cc[VSUSP] = _POSIX_VDISABLE;
  return modes;
}

// A terminal in this mode returns whole lines.
Result<std::size_t> read_line(int terminal, std::span<char> line, int interrupt) {
  for (;;) {
    if (wait_for(terminal, POLLIN, {TimePoint::max(), interrupt}) == WaitEnd::interrupted) return interrupted();
    const ssize_t got = read(terminal, line.data(), line.size());
    if (got >= 0) return without_newline({line.data(), static_cast<std::size_t>(got)}).size();
    if (!failed_for_now()) return no_terminal();
  }
}

Result<Secret> ask_terminal(const std::string& server, int interrupt) {
  const UniqueFd terminal(open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  termios former{};
  if (!terminal || tcgetattr(terminal.get(), &former) != 0) return no_terminal();
  const termios wanted = silent(former);
  if (tcsetattr(terminal.get(), TCSAFLUSH, &wanted) != 0) return no_terminal();
  write_line(terminal.get(), "Password for " + escaped(server) + ": ");
  auto line =
      Secret::written(Secret::kLongest, [&](std::span<char> out) { return read_line(terminal.get(), out, interrupt); });
  tcsetattr(terminal.get(), TCSAFLUSH, &former);
  write_line(terminal.get(), "\n");
  if (line && line->text().empty()) return cannot_ask("the password is empty");
  return line;
}

// Asks for the password of `server` on /dev/tty, reads a line without echo, and restores the terminal. `interrupt` as
// in Until, if the caller has blocked signals; -1: blocks them here, and dies of a signal after restoring the terminal.
// Errors: usage (there is no terminal, or the line is empty); interrupted.
Result<Secret> ask_password(const std::string& server, int interrupt) {
  if (interrupt >= 0) return ask_terminal(server, interrupt);
  run::SignalBlock signals = RLOCK_TRY(run::SignalBlock::begin());
  auto password = ask_terminal(server, signals.fd());
  if (!password && password.error().code == Error::Code::interrupted) run::die_of(ending_signal(signals));
  signals.restore();
  return password;
}

// The address in a configuration file that has a password for this server, or null. A nested rlock needs it because
// RLOCK_URL comes without the password.
const ConfiguredUrl* configured_for(const CommonOptions& options, const redis::Address& address) {
  for (const ConfiguredUrl& one : options.configured_urls) {
    const auto configured = redis::parse_address(one.url.text());
    if (configured && configured->url() == address.url() && configured->server.password) return &one;
  }
  return nullptr;
}

// Passwords that are the same for all servers.
struct CommonPasswords {
  redis::Endpoint given;  // its password, or the source of it, and about_password; "": none is given
  std::optional<Secret> sentinel;
};

// Moves them out of the environment, reads a file, which may be a pipe, and asks for one that is to be typed. `first`:
// of `several` servers or one.
Result<CommonPasswords> common_passwords(const CommonOptions& options, const redis::Endpoint& first, bool several,
                                         int interrupt) {
  CommonPasswords common{.sentinel = extract_variable("RLOCK_SENTINEL_PASSWORD")};
  redis::Endpoint& given = common.given;
  for (const char* variable : kPasswordVariables) {
    const std::optional<Secret> password = extract_variable(variable);
    if (!password || given.password) continue;
    given.password = password;
    given.about_password = came_from(variable);
  }
  const auto& from = options.password_from;
  if (!from || first.kind == redis::Endpoint::Kind::local) return common;
  using enum PasswordFrom::Kind;
  const std::string path = from->kind == file ? " " + escaped(from->text) : "";
  given = redis::Endpoint{.about_password = came_from(from->source.text() + path)};
  if (from->kind == file) RLOCK_TRY(read_from_file(given, from->text));
  if (from->kind == terminal) {
    given.password = RLOCK_TRY(ask_password(several ? "all servers" : first.display(), interrupt));
  }
  if (from->kind == command) {
    given.password_source = source_of_command(from->text);
    if (several) given.password_source = one_at_a_time(*given.password_source);
  }
  return common;
}

void add_password(redis::Address& address, const CommonOptions& options, const redis::Endpoint& given) {
  redis::Endpoint& endpoint = address.server;
  // A private server has no password, because only this user can reach it.
  if (endpoint.kind == redis::Endpoint::Kind::local) return;
  if (!given.about_password.empty()) {
    endpoint.password = given.password;
    endpoint.password_source = given.password_source;
    endpoint.about_password = given.about_password;
  } else if (endpoint.password) {
    endpoint.about_password = came_from("the address in " + options.url_source.text());
  } else if (const ConfiguredUrl* configured = configured_for(options, address)) {
    endpoint.password = redis::parse_address(configured->url.text())->server.password;
    endpoint.about_password = came_from("the address in the configuration file");
  } else {
    endpoint.about_password = no_password("--password-file, --password-command, --ask-password or RLOCK_PASSWORD");
  }
}

// The same for Sentinels, which have users of their own.
Result<void> add_sentinel_password(redis::Address& address, const CommonOptions& options,
                                   const CommonPasswords& common) {
  const auto& file = options.sentinel_password_file;
  address.sentinel.user = options.sentinel_user.value_or("");
  address.sentinel.password = common.sentinel;
  const std::string user = "of the Sentinels (--sentinel-user)";
  address.sentinel.about_password = file ? came_from("--sentinel-password-file " + escaped(*file), user)
                                    : common.sentinel
                                        ? came_from("RLOCK_SENTINEL_PASSWORD", user)
                                        : no_password("--sentinel-password-file or RLOCK_SENTINEL_PASSWORD");
  if (address.kind != redis::Address::Kind::sentinel || !file) return {};
  return read_from_file(address.sentinel, *options.sentinel_password_file);
}

}  // namespace

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text && !without_newline(text).empty();
}

std::string absolute(const std::string& path) {
  std::error_code unknown;
  const auto whole = path.empty() ? std::filesystem::path() : std::filesystem::absolute(path, unknown);
  return unknown ? path : whole.string();
}

int ending_signal(run::SignalBlock& signals) {
  int first = 0;
  while (const auto signal = signals.next()) {
    if (signals.asks_to_end(signal->number)) return signal->number;
    if (first == 0) first = signal->number;
  }
  return first != 0 ? first : SIGTERM;
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

std::optional<Source> source_of_passwords(const CommonOptions& options, const std::vector<redis::Address>& addresses) {
  if (options.password_from) return options.password_from->source;
  for (const char* variable : kPasswordVariables) {
    if (is_set(variable)) return Source{Source::Kind::variable, variable};
  }
  if (std::ranges::any_of(addresses, [](const redis::Address& one) { return one.server.password.has_value(); })) {
    return options.url_source;
  }
  for (const redis::Address& address : addresses) {
    if (const ConfiguredUrl* configured = configured_for(options, address)) return configured->source;
  }
  return std::nullopt;
}

Result<void> add_passwords(std::vector<redis::Address>& addresses, CommonOptions& options, int interrupt) {
  const CommonPasswords common =
      RLOCK_TRY(common_passwords(options, addresses.front().server, addresses.size() > 1, interrupt));
  for (redis::Address& address : addresses) {
    add_password(address, options, common.given);
    RLOCK_TRY(add_sentinel_password(address, options, common));
  }
  for (ConfiguredUrl& one : options.configured_urls) one.url.wipe();
  return {};
}

}  // namespace rlock::cli
