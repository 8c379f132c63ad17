// SPDX-License-Identifier: MIT
#include "options/settings.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/account.h"
#include "base/log.h"
#include "base/text.h"
#include "options/config_file.h"
#include "options/environment.h"
#include "options/suggest.h"
#include "options/trusted_file.h"
#include "redis/address.h"

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
  each_distinct_setting([&](const OptionSpec& option) { names.push_back(option.name()); });
  return names;
}

// One of the options that are that setting, or null: there is none.
const OptionSpec* find_setting(std::string_view name) {
  const OptionSpec* found = nullptr;
  each_setting([&](const OptionSpec& option) {
    if (option.is_called(name)) found = &option;
  });
  return found;
}

// --config and --profile say which settings are read, and files cannot.
bool chooses_settings(std::string_view name) {
  return name == config_option().name() || name == profile_option().name();
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
    if (!find_setting(setting)) setting.clear();
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

// A string may stand for everything, an integer for a number or a duration, a boolean for a flag.
Result<void> check_type(const ConfigEntry& entry, const OptionSpec& option) {
  using Type = ConfigEntry::Type;
  const bool flag = option.value.empty(), number = option.value == "N", duration = option.value == "DUR";
  if (entry.type == Type::list && &option != &url_option()) {
    return fail(Error::Code::config, entry.origin + ": a setting has one value; only url may be a list");
  }
  if (entry.type == Type::text || entry.type == Type::list || (entry.type == Type::flag && flag)) return {};
  if (entry.type == Type::number && (number || duration)) return {};
  return fail(Error::Code::config, entry.origin + ": this is " +
                                       (flag       ? "true or false, without quotes"
                                        : number   ? "a number"
                                        : duration ? "a duration: put it in quotes"
                                                   : "a text: put it in quotes"));
}

Result<void> check_name(const ConfigEntry& entry) {
  const OptionSpec* option = find_setting(entry.name);
  if (option && !chooses_settings(entry.name)) return check_type(entry, *option);
  std::vector<std::string_view> known = setting_names();
  std::erase_if(known, chooses_settings);
  return fail(Error::Code::config, entry.origin + ": unknown setting" + suggestion(entry.name, known));
}

bool holds_password(const ConfigEntry& entry) {
  return std::ranges::any_of(redis::split_addresses(entry.text),
                             [](std::string_view url) { return !redis::password_in(url).empty(); });
}

Result<void> check(const ConfigEntry& entry, const std::string& path, bool read_by_others) {
  RLOCK_TRY(check_name(entry));
  if (!holds_password(entry) || !read_by_others) return {};
  return fail(Error::Code::config, entry.origin + " holds a password, and others may read it; chmod 600 " +
                                       escaped(shell_word(path)) + ", or leave it to password-file");
}

}  // namespace

void each_distinct_setting(const std::function<void(const OptionSpec&)>& use) {
  std::set<std::string_view> used;
  each_setting([&](const OptionSpec& option) {
    if (used.insert(option.name()).second) use(option);
  });
}

struct Settings::File {
  std::string path;
  bool chosen, can_be_read_again;
  ConfigFile content;
};

// None: there is no such file.
Result<std::optional<Settings::File>> Settings::read_file(const std::string& path, bool chosen) const {
  auto opened = TrustedFile::open(path);
  if (!opened && !chosen && opened.error().code == Error::Code::config) {
    opened.error().message += "; --config FILE reads another one instead";
  }
  const auto file = RLOCK_TRY(std::move(opened));
  if (!file && chosen) {
    return fail(Error::Code::config, find(config_option())->origin + ": " + escaped(path) + ": " + errno_text(ENOENT));
  }
  if (!file) return std::nullopt;
  std::string text(kLongestFile, '\0');
  text.resize(RLOCK_TRY(file->read(text)));
  ConfigFile content = RLOCK_TRY(read_config(path, text));
  for (const ConfigEntry& entry : content.entries) RLOCK_TRY(check(entry, path, file->read_by_others()));
  return File{path, chosen, file->is_file(), std::move(content)};
}

Result<std::vector<Settings::File>> Settings::read_files() const {
  const Setting* said = find(config_option());
  const auto paths = said ? std::vector{said->text} : std::vector<std::string>{user_file(), "/etc/rlock/rlock.toml"};
  std::vector<File> files;
  for (const std::string& path : paths) {
    if (auto file = RLOCK_TRY(read_file(path, said != nullptr))) files.push_back(*std::move(file));
  }
  return files;
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
      if (!option.setting || !option.is_called(name)) continue;
      setting.former = name != option.name();
      const auto [at, is_new] = known_.try_emplace(&option, setting);
      // Where one source says both, the name that it has now counts.
      if (!is_new && at->second.rank == setting.rank && at->second.former && !setting.former) at->second = setting;
    }
  };
  add_from(common_options());
  std::ranges::for_each(subcommand.parts, add_from);
  if (!subcommand.shows_settings) return;
  for (const SubcommandSpec& spec : subcommands()) std::ranges::for_each(spec.parts, add_from);
}

Result<void> Settings::add_variables(const SubcommandSpec& subcommand) {
  for (const Variable& variable : rlock_variables()) {
    if (variable.setting.empty()) continue;
    const std::string name(variable.name);
    // Not as if it were unset: a secret that a pipeline failed to fill in must not send a job to another server.
    if (variable.value.empty())
      return fail(Error::Code::config, name + " is set but empty; unset it or give it a value");
    add(subcommand, variable.setting, {std::string(variable.value), name, Source::environment});
  }
  return {};
}

void Settings::add_entries(const SubcommandSpec& subcommand, const File& file, std::string_view profile) {
  ++rank_;
  for (const ConfigEntry& entry : file.content.entries) {
    if (entry.profile != profile) continue;
    add(subcommand, entry.name, {entry.text, entry.origin, profile.empty() ? Source::file : Source::profile});
    if (entry.name != url_option().name() || !holds_password(entry)) continue;
    for (const std::string_view url : redis::split_addresses(entry.text)) addresses_.emplace_back(url);
    if (file.chosen && file.can_be_read_again) config_ = file.path;
  }
}

Result<void> Settings::add_profile(const SubcommandSpec& subcommand, std::span<const File> files) {
  const Setting* said = find(profile_option());
  if (!said) return {};
  if (!is_profile_name(said->text)) {
    return std::unexpected(
        blame({Error::Code::usage, in_quotes(said->text) + " is no profile's name: that has letters, digits, - and _"},
              *said));
  }
  bool found = false;
  for (const File& file : files) {
    if (std::ranges::find(file.content.profiles, said->text) == file.content.profiles.end()) continue;
    found = true;
    add_entries(subcommand, file, said->text);
    if (!file.chosen || file.can_be_read_again) profile_ = said->text;
    if (file.chosen && file.can_be_read_again) config_ = file.path;
  }
  if (!found) return no_such_profile(*said, files);
  return {};
}

std::unexpected<Error> Settings::no_such_profile(const Setting& said, std::span<const File> files) {
  std::string read, known;
  std::set<std::string_view> names;
  for (const File& file : files) {
    read += (read.empty() ? " in " : " or ") + escaped(file.path);
    names.insert(file.content.profiles.begin(), file.content.profiles.end());
  }
  for (const std::string_view name : names) known.append(known.empty() ? "" : ", ").append(name);
  return fail(Error::Code::config,
              said.origin + ": there is no profile " + in_quotes(said.text) +
                  (files.empty() ? ", as there is no configuration file" : read) + "; " +
                  (known.empty() ? "write its settings below [profile.NAME]" : "there are: " + escaped(known)));
}

Result<Settings> Settings::load(const Parsed& parsed) {
  Settings settings;
  for (const auto& [option, text] : parsed.options) {
    const bool former = parsed.by_former_name.contains(option);
    settings.known_.try_emplace(option, Setting{.text = text,
                                                .origin = "--" + std::string(former ? option->former : option->name()),
                                                .source = Source::option,
                                                .former = former});
  }
  settings.rank_ = kRankOfVariables;
  RLOCK_TRY(settings.add_variables(*parsed.subcommand));
  const std::vector<File> files = RLOCK_TRY(settings.read_files());
  RLOCK_TRY(settings.add_profile(*parsed.subcommand, files));
  for (const File& file : files) {
    settings.add_entries(*parsed.subcommand, file, "");
    settings.files_.push_back(file.path);
  }
  return settings;
}

const Setting* Settings::find(const OptionSpec& option) const {
  const auto found = known_.find(&option);
  return found == known_.end() ? nullptr : &found->second;
}

}  // namespace rlock::cli
