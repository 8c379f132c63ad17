// SPDX-License-Identifier: MIT
#include "options/settings.h"

#include <cstdlib>

#include "base/log.h"
#include "base/trust.h"
#include "options/config_file.h"
#include "options/help.h"
#include "options/trusted_file.h"

namespace rlock::cli {
namespace {

constexpr std::size_t kLongestFile = 65536;

constexpr std::string_view kPrefix = "RLOCK_";

// Variables that are not settings: passwords, and those that rlock sets for commands.
constexpr std::string_view kOwnVariables[] = {"RLOCK_PASSWORD",    "RLOCK_SENTINEL_PASSWORD",
                                              "REDISCLI_AUTH",     "RLOCK_NAME",
                                              "RLOCK_OWNER",       "RLOCK_TOKEN",
                                              "RLOCK_HELD",        "RLOCK_URL",
                                              "RLOCK_EXIT_STATUS", "RLOCK_WHY",
                                              "RLOCK_SLOT",        "RLOCK_RESOURCE",
                                              "RLOCK_WANTED_NAME", "RLOCK_WANTED_BY"};

bool is_own_variable(std::string_view name) {
  return std::ranges::find(kOwnVariables, name) != std::end(kOwnVariables);
}

// Values that come from YAML, a Secret or a file end with a line break, or have blanks around them. A file or a command
// may begin or end with blanks of its own.
std::string tidied(const OptionSpec& option, std::string_view text) {
  const bool free_form = option.value == "FILE" || option.value == "TEXT";
  const std::string_view blanks = free_form ? "\r\n" : " \t\r\n";
  if (!free_form) text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return std::string(text.substr(0, text.find_last_not_of(blanks) + 1));  // npos + 1 is 0
}

// "kill-after" -> "RLOCK_KILL_AFTER"
std::string variable_of(std::string_view name) {
  std::string variable(kPrefix);
  for (const char c : name) variable += c == '-' ? '_' : static_cast<char>(c - 'a' + 'A');
  return variable;
}

// The opposite, for any name that begins with RLOCK_.
std::string option_of_variable(std::string_view variable) {
  std::string name(variable.substr(kPrefix.size()));
  for (char& c : name) c = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

// The option that a variable sets; null: none. Makes no list, because that would be a third of the work before a job.
const OptionSpec* option_set_by(std::string_view variable) {
  const auto is_meant = [&, name = option_of_variable(variable)](const OptionSpec& one) {
    return one.setting() && one.name() == name && variable_of(name) == variable;
  };
  const auto common = std::ranges::find_if(common_options(), is_meant);
  if (common != common_options().end()) return &*common;
  for (const SubcommandSpec& spec : subcommands()) {
    auto own = spec.options();
    if (const auto found = std::ranges::find_if(own, is_meant); found != own.end()) return &*found;
  }
  return nullptr;
}

// The variables that begin with RLOCK_, and their values.
std::vector<std::pair<std::string_view, std::string_view>> our_variables() {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    const auto end = std::min(text.find('='), text.size() - 1);
    if (text.starts_with(kPrefix)) all.emplace_back(text.substr(0, end), text.substr(end + 1));
  }
  return all;
}

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
  std::vector<const OptionSpec*> known = all_settings();
  std::erase(known, &config_option());  // it selects what is read
  const auto found = std::ranges::find(known, entry.name, &OptionSpec::name);
  if (found != known.end()) return *found;
  for (const SubcommandSpec& spec : subcommands()) {
    if (std::ranges::count(options_of(&spec), entry.name, &OptionSpec::name) == 0) continue;
    return bad_entry(entry, "an option of rlock " + std::string(spec.name) + ", not a setting");
  }
  const auto spelled = [](std::string_view name) { return std::string(name); };
  return bad_entry(entry, "unknown setting" + suggestion(entry.name, known, spelled));
}

bool holds_password(const ConfigEntry& entry) {
  return std::ranges::any_of(redis::split_addresses(entry.text),
                             [](std::string_view url) { return !redis::password_in(url).empty(); });
}

Result<void> check_entry(const ConfigEntry& entry, const OptionSpec& option, const TrustedFile& file,
                         const std::string& path) {
  if (entry.is_list && &option != &url_option()) {
    return bad_entry(entry, "a setting has one value; only url can be a list");
  }
  // A job may run in a folder that others fill, such as the checkout of a pull request.
  if (option.value == "FILE" && !entry.text.starts_with('/')) {
    return bad_entry(entry, "write the full path: a relative one would depend on the working directory of each job");
  }
  if (!holds_password(entry) || !file.read_by_others()) return {};
  return fail(Error::Code::config, entry.source.text() +
                                       " contains a password, but others may read the file; run chmod 600 " +
                                       escaped(shell_word(path)) + ", or use password-file");
}

// For users whose own file cannot be trusted.
std::string advice_for(const std::string& path) {
  const char* home = std::getenv("HOME");
  const bool closed = home && path.starts_with(home) && access(home, X_OK) != 0 && errno == EACCES;
  return closed ? "; this user may not enter the folder in HOME, " + in_quotes(home) +
                      ": correct HOME, or give --config FILE"
                : "; to read another file, give --config FILE";
}

}  // namespace

std::string Source::text() const {
  switch (kind) {
    case Kind::option: return "--" + name;
    case Kind::variable: return name;
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
  for (const auto& [name, value] : our_variables()) {
    if (is_own_variable(name) || option_set_by(name)) continue;
    log::warning(escaped(name, 100) + " is not a variable that rlock knows" +
                 suggestion(option_of_variable(name), all_settings(), variable_of));
  }
}

Result<Settings> Settings::load(const Parsed& parsed) {
  Settings settings;
  settings.known_ = parsed.options;
  for (const OptionSpec* option : options_of(parsed.subcommand)) {
    const auto given = settings.known_.find(option->name());
    const bool tidy = option->setting() || option->value == "DUR" || option->value == "N";
    if (tidy && given != settings.known_.end()) given->second.text = tidied(*option, given->second.text);
  }
  RLOCK_TRY(settings.add_variables());
  const Setting* said = settings.find(config_option());
  const auto paths = said ? std::vector{said->text} : std::vector<std::string>{user_file(), "/etc/rlock/rlock.toml"};
  for (const std::string& path : paths) RLOCK_TRY(settings.add_file(path, said));
  return settings;
}

Result<void> Settings::add_variables() {
  rank_ = kRankOfVariables;
  for (const auto& [name, value] : our_variables()) {
    const OptionSpec* option = option_set_by(name);
    if (!option) continue;
    const std::string variable(name), text = tidied(*option, value);
    // Ignoring it could send a job to another server, for example if a pipeline failed to fill in a secret.
    if (text.empty()) return fail(Error::Code::config, variable + " is set but empty; unset it or give it a value");
    add(*option, {text, {Source::Kind::variable, variable}});
  }
  return {};
}

Result<void> Settings::add_file(const std::string& path, const Setting* said) {
  auto opened = TrustedFile::open(path);
  if (!opened && !said && opened.error().code == Error::Code::config) opened.error().message += advice_for(path);
  const auto file = RLOCK_TRY(std::move(opened));
  if (!file && !said) return {};
  if (!file) return fail(Error::Code::config, said->source.text() + ": " + escaped(path) + ": " + errno_text(ENOENT));
  std::string text(kLongestFile, '\0');
  text.resize(RLOCK_TRY(file->read(text)));
  files.push_back(path);
  ++rank_;
  for (const ConfigEntry& entry : RLOCK_TRY(read_config(path, text))) {
    const OptionSpec& option = *RLOCK_TRY(option_of(entry));
    RLOCK_TRY(check_entry(entry, option, *file, path));
    add(option, {tidied(option, entry.text), entry.source});
    if (&option != &url_option() || !holds_password(entry)) continue;
    for (const std::string_view url : redis::split_addresses(entry.text)) {
      addresses_with_password.push_back({Secret(url), entry.source});
    }
    if (said && file->can_be_opened_again()) config_for_command = path;
  }
  return {};
}

void Settings::add(const OptionSpec& option, Setting setting) {
  setting.source.rank = rank_;
  known_.try_emplace(option.name(), std::move(setting));
}

const Setting* Settings::find(const OptionSpec& option) const {
  const auto found = known_.find(option.name());
  if (found == known_.end() || (!option.setting() && !found->second.source.on_command_line())) return nullptr;
  return &found->second;
}

}  // namespace rlock::cli
