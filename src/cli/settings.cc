// SPDX-License-Identifier: MIT
#include "cli/settings.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/log.h"
#include "base/text.h"
#include "cli/environment.h"
#include "cli/suggest.h"
#include "cli/trusted_file.h"
#include "redis/endpoint.h"

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

struct File {
  std::string text;
  bool read_by_others, can_be_read_again;
};

// None: there is no such file.
Result<std::optional<File>> read_file(const std::string& path) {
  const auto file = RLOCK_TRY(TrustedFile::open(path));
  if (!file) return std::nullopt;
  std::string text(kLongestFile, '\0');
  text.resize(RLOCK_TRY(file->read(text)));
  return File{std::move(text), file->read_by_others(), file->is_file()};
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

void warn_of_unknown_variables() {
  std::vector<std::string> known;
  for (const std::string_view name : setting_names()) known.push_back(variable_of(name));
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view variable = std::string_view(*entry).substr(0, std::string_view(*entry).find('='));
    if (!variable.starts_with("RLOCK_") || is_own_variable(variable)) continue;
    if (std::ranges::find(known, variable) != known.end()) continue;
    log::warning(escaped(variable, 100) + " is no variable of rlock's" +
                 suggestion(variable, {known.begin(), known.end()}));
  }
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
    auto read = read_file(file);
    if (!read) {
      if (!chosen) read.error().message += "; --config FILE reads another one instead";
      return std::unexpected(std::move(read).error());
    }
    const std::optional<File> found = std::move(*read);
    if (!found && chosen)
      return fail(Error::Code::config, chosen->origin + ": " + escaped(file) + ": " + errno_text(ENOENT));
    if (!found) continue;
    auto pairs = read_toml(found->text);
    if (!pairs) return std::unexpected(std::move(pairs).error().in(escaped(file)));
    for (const auto& [name, value] : *pairs) {
      if (std::ranges::find(names, name) == names.end() || name == "config") {
        return fail(Error::Code::config,
                    escaped(file) + ": unknown setting " + in_quotes(name) + suggestion(name, names));
      }
      const bool secret = !redis::password_in(value).empty();
      if (secret && found->read_by_others) {
        return fail(Error::Code::config, escaped(file) + ": " + name + " holds a password, and others may read it; " +
                                             "chmod 600 " + escaped(shell_word(file)) + ", or leave it to password-file");
      }
      if (secret && name == "url" && !settings.address_) {
        settings.address_ = value;
        if (chosen && found->can_be_read_again) settings.file_ = file;
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
