// SPDX-License-Identifier: MIT
#include "cli/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/account.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/environment.h"
#include "cli/suggest.h"
#include "cli/trusted_file.h"
#include "redis/endpoint.h"

namespace rlock::cli {
namespace {

constexpr std::size_t kLongestFile = 65536;
constexpr std::string_view kPrefix = "RLOCK_";

// Calls `use` with each option of any subcommand that is a setting, too; with some of them more than once.
template <class Use>
void each_setting(const Use& use) {
  const auto use_all = [&](std::span<const OptionSpec> options) {
    for (const OptionSpec& option : options) {
      if (option.setting) use(option);
    }
  };
  use_all(common_options());
  for (const SubcommandSpec& spec : subcommands()) std::ranges::for_each(spec.parts, use_all);
}

std::vector<std::string_view> setting_names() {
  std::vector<std::string_view> names;
  each_setting([&](const OptionSpec& option) {
    if (std::ranges::find(names, option.name()) == names.end()) names.push_back(option.name());
  });
  return names;
}

bool is_setting(std::string_view name) {
  bool known = false;
  each_setting([&](const OptionSpec& option) { known = known || option.name() == name; });
  return known;
}

// A variable of the environment that is named as ours are.
struct Variable {
  std::string_view name, value;
  std::string setting;  // that it may stand for: "wait" for RLOCK_WAIT; "": for none
};

std::vector<Variable> rlock_variables() {
  std::vector<Variable> variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    if (!text.starts_with(kPrefix)) continue;
    const std::size_t equals = std::min(text.find('='), text.size());
    variables.push_back({text.substr(0, equals), text.substr(std::min(equals + 1, text.size())), ""});
    std::string& setting = variables.back().setting;
    for (const char c : text.substr(kPrefix.size(), equals - kPrefix.size())) {
      setting += c == '_' ? '-' : static_cast<char>(c - 'A' + 'a');
    }
    if (!is_setting(setting)) setting.clear();
  }
  return variables;
}

// A cron job has no XDG_CONFIG_HOME and perhaps no HOME: it shall find the same file as a shell does.
std::string user_file() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config && *config == '/') return std::string(config) + "/rlock/rlock.toml";
  const char* home = std::getenv("HOME");
  const auto home_of_account = [] {
    const auto account = account_of(geteuid());
    return account ? account->home : "/nonexistent";
  };
  return (home && *home == '/' ? home : home_of_account()) + "/.config/rlock/rlock.toml";
}

Result<void> check_name(const std::string& path, const std::string& name) {
  if (is_setting(name) && name != config_option().name()) return {};
  return fail(Error::Code::config,
              escaped(path) + ": unknown setting " + in_quotes(name) + suggestion(name, setting_names()));
}

}  // namespace

struct Settings::File {
  std::string path, text;
  bool chosen, read_by_others, can_be_read_again;
};

// None: there is no such file.
Result<std::optional<Settings::File>> Settings::read_file(const std::string& path, bool chosen) {
  const auto file = RLOCK_TRY(TrustedFile::open(path));
  if (!file) return std::nullopt;
  std::string text(kLongestFile, '\0');
  text.resize(RLOCK_TRY(file->read(text)));
  return File{path, std::move(text), chosen, file->read_by_others(), file->is_file()};
}

std::string variable_of(std::string_view name) {
  std::string variable(kPrefix);
  for (const char c : name) {
    variable += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
  }
  return variable;
}

void warn_of_unknown_variables() {
  for (const Variable& variable : rlock_variables()) {
    if (!variable.setting.empty() || is_own_variable(variable.name)) continue;
    std::vector<std::string> known;
    for (const std::string_view name : setting_names()) known.push_back(variable_of(name));
    log::warning(escaped(variable.name, 100) + " is no variable of rlock's" +
                 suggestion(variable.name, {known.begin(), known.end()}));
  }
}

void Settings::add(const SubcommandSpec& subcommand, std::string_view name, Setting setting) {
  setting.rank = rank_;
  const auto add_from = [&](std::span<const OptionSpec> options) {
    for (const OptionSpec& option : options) {
      if (option.setting && option.name() == name) known_.try_emplace(&option, setting);
    }
  };
  add_from(common_options());
  std::ranges::for_each(subcommand.parts, add_from);
}

Result<void> Settings::add_variables(const SubcommandSpec& subcommand) {
  for (const Variable& variable : rlock_variables()) {
    if (variable.setting.empty()) continue;
    const std::string name(variable.name);
    // Not as if it were unset: a secret that a pipeline failed to fill in must not send a job to another server.
    if (variable.value.empty())
      return fail(Error::Code::config, name + " is set but empty; unset it or give it a value");
    add(subcommand, variable.setting, {std::string(variable.value), name});
  }
  return {};
}

Result<void> Settings::add_pair(const SubcommandSpec& subcommand, const File& file, const std::string& name,
                                const std::string& value) {
  RLOCK_TRY(check_name(file.path, name));
  const bool secret = !redis::password_in(value).empty();
  if (secret && file.read_by_others) {
    return fail(Error::Code::config, escaped(file.path) + ": " + name + " holds a password, and others may read it; " +
                                         "chmod 600 " + escaped(shell_word(file.path)) +
                                         ", or leave it to password-file");
  }
  if (secret && name == url_option().name() && !address_) {
    address_ = value;
    if (file.chosen && file.can_be_read_again) file_ = file.path;
  }
  add(subcommand, name, {value, escaped(file.path) + ": " + name});
  return {};
}

Result<void> Settings::add_file(const SubcommandSpec& subcommand, const std::string& path, bool chosen) {
  auto read = read_file(path, chosen);
  if (!read && !chosen && read.error().code == Error::Code::config) {
    read.error().message += "; --config FILE reads another one instead";
  }
  const std::optional<File> file = RLOCK_TRY(std::move(read));
  if (!file && chosen) {
    return fail(Error::Code::config, find(config_option())->origin + ": " + escaped(path) + ": " + errno_text(ENOENT));
  }
  if (!file) return {};
  ++rank_;
  auto pairs = read_toml(file->text);
  if (!pairs) return std::unexpected(std::move(pairs).error().in(escaped(path)));
  for (const auto& [name, value] : *pairs) RLOCK_TRY(add_pair(subcommand, *file, name, value));
  return {};
}

Result<Settings> Settings::load(const Parsed& parsed) {
  Settings settings;
  for (const auto& [option, text] : parsed.options) {
    settings.known_.try_emplace(option, Setting{text, "--" + std::string(option->name()), true});
  }
  ++settings.rank_;
  RLOCK_TRY(settings.add_variables(*parsed.subcommand));
  if (const Setting* chosen = settings.find(config_option())) {
    RLOCK_TRY(settings.add_file(*parsed.subcommand, chosen->text, true));
    return settings;
  }
  for (const std::string& path : {user_file(), std::string("/etc/rlock/rlock.toml")}) {
    RLOCK_TRY(settings.add_file(*parsed.subcommand, path, false));
  }
  return settings;
}

const Setting* Settings::find(const OptionSpec& option) const {
  const auto found = known_.find(&option);
  return found == known_.end() ? nullptr : &found->second;
}

}  // namespace rlock::cli
