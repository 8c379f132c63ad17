// SPDX-License-Identifier: MIT
#include "cli/settings.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "base/unique_fd.h"
#include "cli/suggest.h"

namespace rlock::cli {
namespace {

constexpr std::size_t kLongestFile = 65536;

std::vector<std::string_view> setting_names() {
  std::vector<std::string_view> names;
  const auto add = [&](std::span<const OptionSpec> options) {
    for (const OptionSpec& option : options) {
      if (option.setting && std::ranges::find(names, option.name()) == names.end()) names.push_back(option.name());
    }
  };
  add(common_options());
  for (const SubcommandSpec& spec : subcommands()) add(spec.options);
  return names;
}

// None: there is no such file.
Result<std::optional<std::string>> read_file(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const auto failed = [&](int number) { return fail(Error::Code::config, escaped(path) + ": " + errno_text(number)); };
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return failed(errno);
  }
  struct stat info{};
  if (fstat(fd.get(), &info) != 0) return failed(errno);
  if (S_ISDIR(info.st_mode)) return failed(EISDIR);
  std::string text(kLongestFile + 1, '\0');
  std::size_t length = 0;
  for (ssize_t got; length < text.size(); length += static_cast<std::size_t>(got)) {
    got = read(fd.get(), text.data() + length, text.size() - length);
    if (got < 0) return failed(errno);
    if (got == 0) break;
  }
  if (length > kLongestFile) return failed(EFBIG);
  text.resize(length);
  return text;
}

// A cron job has no XDG_CONFIG_HOME and perhaps no HOME: it shall find the same file as a shell does.
std::string user_file() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config && *config == '/') return std::string(config) + "/rlock/rlock.toml";
  const char* home = std::getenv("HOME");
  if (!home || *home != '/') {
    const passwd* entry = getpwuid(geteuid());
    home = entry ? entry->pw_dir : "/nonexistent";
  }
  return std::string(home) + "/.config/rlock/rlock.toml";
}

}  // namespace

std::string variable_of(std::string_view name) {
  std::string variable = "RLOCK_";
  for (const char c : name) {
    variable += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
  }
  return variable;
}

Result<Settings> Settings::load(const Parsed& parsed) {
  Settings settings;
  // In the order of rank: what is known stays.
  for (const auto& [name, text] : parsed.options) {
    settings.known_.try_emplace(name, Setting{text, "--" + name, true});
  }
  const auto names = setting_names();
  for (const std::string_view name : names) {
    const std::string variable = variable_of(name);
    const char* value = std::getenv(variable.c_str());
    if (!value) continue;
    // Not as if it were unset: a secret that a pipeline failed to fill in must not send a job to another server.
    if (!*value) return fail(Error::Code::config, variable + " is set but empty; unset it or give it a value");
    settings.known_.try_emplace(std::string(name), Setting{value, variable});
  }

  const auto chosen = settings.find("config");
  const std::vector<std::string> files =
      chosen ? std::vector{chosen->text} : std::vector{user_file(), std::string("/etc/rlock/rlock.toml")};
  for (const std::string& file : files) {
    const auto text = RLOCK_TRY(read_file(file));
    if (!text && chosen)
      return fail(Error::Code::config, chosen->origin + ": " + escaped(file) + ": " + errno_text(ENOENT));
    if (!text) continue;
    auto pairs = read_toml(*text);
    if (!pairs) return std::unexpected(std::move(pairs).error().in(escaped(file)));
    for (const auto& [name, value] : *pairs) {
      if (std::ranges::find(names, name) == names.end() || name == "config") {
        return fail(Error::Code::config,
                    escaped(file) + ": unknown setting " + in_quotes(name) + suggestion(name, names));
      }
      settings.known_.try_emplace(name, Setting{value, escaped(file) + ": " + name});
    }
  }
  return settings;
}

std::optional<Setting> Settings::find(std::string_view name) const {
  const auto found = known_.find(name);
  if (found == known_.end()) return {};
  return found->second;
}

}  // namespace rlock::cli
