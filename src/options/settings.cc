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
#include "options/help.h"
#include "options/trusted_file.h"
#include "redis/address.h"

namespace rlock::cli {
namespace {

constexpr std::size_t kLongestFile = 65536;

// Variables that are not settings: passwords, and those that rlock sets for commands.
constexpr std::string_view kOwnVariables[] = {"RLOCK_PASSWORD",    "RLOCK_SENTINEL_PASSWORD",
                                              "REDISCLI_AUTH",     "RLOCK_NAME",
                                              "RLOCK_OWNER",       "RLOCK_TOKEN",
                                              "RLOCK_HELD",        "RLOCK_URL",
                                              "RLOCK_EXIT_STATUS", "RLOCK_WHY",
                                              "RLOCK_SLOT",        "RLOCK_RESOURCE"};

bool is_own_variable(std::string_view name) {
  return std::ranges::find(kOwnVariables, name) != std::end(kOwnVariables);
}

// "kill-after" -> "RLOCK_KILL_AFTER"
std::string variable_of(std::string_view name) {
  std::string variable = "RLOCK_";
  for (const char c : name) variable += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
  return variable;
}

// --config and --profile select what is read from files, so files cannot contain them.
bool chooses_settings(const OptionSpec& option) { return &option == &config_option() || &option == &profile_option(); }

// A cron job has no XDG_CONFIG_HOME and perhaps no HOME, but must find the same file as a shell.
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

std::unexpected<Error> bad_entry(const ConfigEntry& entry, const std::string& why) {
  return std::unexpected(blame({Error::Code::config, why}, entry.source));
}

// The option with the name of the entry.
Result<const OptionSpec*> option_of(const ConfigEntry& entry) {
  std::vector<std::string_view> names;
  for (const OptionSpec* option : all_settings()) {
    if (chooses_settings(*option)) continue;
    if (option->is_called(entry.name)) return option;
    names.push_back(option->name());
  }
  return bad_entry(entry, "unknown setting" + suggestion(entry.name, names));
}

// Every option accepts a string; numbers and durations also accept an integer, and flags a boolean.
Result<void> check_type(const ConfigEntry& entry, const OptionSpec& option) {
  using Type = ConfigEntry::Type;
  if (entry.type == Type::text || (entry.type == Type::list && &option == &url_option())) return {};
  if (entry.type == Type::list) return bad_entry(entry, "a setting has one value; only url can be a list");
  if (option.value.empty()) {
    return entry.type == Type::flag ? Result<void>() : bad_entry(entry, "write true or false, without quotes");
  }
  const bool number = option.value == "N", duration = option.value == "DUR";
  if (entry.type == Type::number && (number || duration)) return {};
  return bad_entry(entry, number     ? "write a number"
                          : duration ? "write the duration in quotes"
                                     : "write the text in quotes");
}

bool holds_password(const ConfigEntry& entry) {
  return std::ranges::any_of(redis::split_addresses(entry.text),
                             [](std::string_view url) { return !redis::password_in(url).empty(); });
}

}  // namespace

std::string Source::text() const {
  switch (kind) {
    case Kind::option: return "--" + name;
    case Kind::variable: return name;
    case Kind::profile:
    case Kind::file: return escaped(file) + ":" + std::to_string(line) + ": " + escaped(name, 100);
    case Kind::fallback: break;
  }
  return "default";
}

const std::vector<const OptionSpec*>& all_settings() {
  static const auto all = [] {
    std::vector<const OptionSpec*> found;
    std::set<std::string_view> names;
    const auto add = [&](const SubcommandSpec* spec) {
      for (const OptionSpec* option : options_of(spec)) {
        if (option->setting() && names.insert(option->name()).second) found.push_back(option);
      }
    };
    add(nullptr);
    for (const SubcommandSpec& spec : subcommands()) add(&spec);
    return found;
  }();
  return all;
}

std::vector<std::string> environment_without_secrets(std::vector<std::string> additions) {
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    if (!is_own_variable(text.substr(0, text.find('=')))) additions.emplace_back(text);
  }
  return additions;
}

void warn_of_unknown_variables() {
  std::vector<std::string> known, former;
  for (const OptionSpec* option : all_settings()) {
    known.push_back(variable_of(option->name()));
    if (!option->former.empty()) former.push_back(variable_of(option->former));
  }
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry, name = text.substr(0, text.find('='));
    if (!name.starts_with("RLOCK_") || is_own_variable(name) || std::ranges::find(known, name) != known.end() ||
        std::ranges::find(former, name) != former.end()) {
      continue;
    }
    log::warning(escaped(name, 100) + " is not a variable that rlock knows" +
                 suggestion(name, {known.begin(), known.end()}));
  }
}

struct Settings::File {
  std::string path;
  bool chosen, can_be_read_again;
  ConfigFile content;
};

// None if there is no such file.
Result<std::optional<Settings::File>> Settings::read_file(const std::string& path, bool chosen) const {
  auto opened = TrustedFile::open(path);
  if (!opened && !chosen && opened.error().code == Error::Code::config) {
    opened.error().message += "; to read another file, give --config FILE";
  }
  const auto file = RLOCK_TRY(std::move(opened));
  if (!file && chosen) {
    return fail(Error::Code::config,
                find(config_option())->source.text() + ": " + escaped(path) + ": " + errno_text(ENOENT));
  }
  if (!file) return std::nullopt;
  std::string text(kLongestFile, '\0');
  text.resize(RLOCK_TRY(file->read(text)));
  ConfigFile content = RLOCK_TRY(read_config(path, text));
  for (const ConfigEntry& entry : content.entries) {
    RLOCK_TRY(check_type(entry, *RLOCK_TRY(option_of(entry))));
    if (!holds_password(entry) || !file->read_by_others()) continue;
    return fail(Error::Code::config, entry.source.text() +
                                         " contains a password, but others may read the file; run chmod 600 " +
                                         escaped(shell_word(path)) + ", or use password-file");
  }
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

void Settings::add(const OptionSpec& option, Setting setting) {
  setting.source.rank = rank_;
  const auto [at, is_new] = known_.try_emplace(option.name(), setting);
  // If a source has both names, the current name counts.
  const bool same_source = !is_new && at->second.source.rank == rank_;
  if (same_source && at->second.former && !setting.former) at->second = std::move(setting);
}

Result<void> Settings::add_variables() {
  rank_ = kRankOfVariables;
  for (const OptionSpec* option : all_settings()) {
    for (const std::string_view name : {option->name(), option->former}) {
      const std::string variable = variable_of(name);
      const char* text = name.empty() ? nullptr : std::getenv(variable.c_str());
      if (!text) continue;
      // Ignoring it could send a job to another server, for example if a pipeline failed to fill in a secret.
      if (!*text) return fail(Error::Code::config, variable + " is set but empty; unset it or give it a value");
      add(*option, {text, {Source::Kind::variable, variable}, name != option->name()});
    }
  }
  return {};
}

void Settings::add_entries(const File& file, std::string_view profile) {
  ++rank_;
  for (const ConfigEntry& entry : file.content.entries) {
    if (entry.profile != profile) continue;
    const OptionSpec& option = **option_of(entry);
    add(option, {entry.text, entry.source, entry.name != option.name()});
    if (&option != &url_option() || !holds_password(entry)) continue;
    for (const std::string_view url : redis::split_addresses(entry.text)) {
      addresses_.push_back({std::string(url), entry.source});
    }
    if (file.chosen && file.can_be_read_again) config_ = file.path;
  }
}

Result<void> Settings::add_profile(std::span<const File> files) {
  const Setting* said = find(profile_option());
  if (!said) return {};
  if (!is_profile_name(said->text)) {
    return std::unexpected(
        blame({Error::Code::usage, in_quotes(said->text) + " is not a profile's name: use letters, digits, - and _"},
              said->source));
  }
  bool found = false;
  for (const File& file : files) {
    if (std::ranges::find(file.content.profiles, said->text) == file.content.profiles.end()) continue;
    found = true;
    add_entries(file, said->text);
    if (!file.chosen || file.can_be_read_again) profile_ = said->text;
    if (file.chosen && file.can_be_read_again) config_ = file.path;
  }
  return found ? Result<void>() : no_such_profile(*said, files);
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
              said.source.text() + ": there is no profile " + in_quotes(said.text) +
                  (files.empty() ? ", because there is no configuration file" : read) + "; " +
                  (known.empty() ? "write its settings below [profile.NAME]" : "there are: " + known));
}

Result<Settings> Settings::load(const Parsed& parsed) {
  Settings settings;
  settings.known_ = parsed.options;
  RLOCK_TRY(settings.add_variables());
  const std::vector<File> files = RLOCK_TRY(settings.read_files());
  RLOCK_TRY(settings.add_profile(files));
  for (const File& file : files) {
    settings.add_entries(file, "");
    settings.files_.push_back(file.path);
  }
  return settings;
}

const Setting* Settings::find(const OptionSpec& option) const {
  const auto found = known_.find(option.name());
  if (found == known_.end() || (!option.setting() && !found->second.source.on_command_line())) return nullptr;
  return &found->second;
}

}  // namespace rlock::cli
