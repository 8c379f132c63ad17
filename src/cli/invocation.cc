// SPDX-License-Identifier: MIT
#include "cli/invocation.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/log.h"
#include "base/text.h"
#include "options/complete.h"
#include "show/json.h"
#include "options/parse.h"
#include "options/passwords.h"
#include "options/settings.h"
#include "options/shown_settings.h"
#include "cli/version.h"
#include "options/words.h"

namespace rlock::cli {
namespace {

// Fills the members that are there for `rows`, in their order.
Result<void> fill(CommonOptions& options, std::span<const OptionSpec> rows, const Settings& settings) {
  for (const OptionSpec& row : rows) {
    const Setting* said = settings.find(row);
    if (said && row.fill) RLOCK_TRY(row.fill(options, *said));
  }
  return {};
}

Result<CommonOptions> read_common(const Settings& settings) {
  CommonOptions common;
  for (const std::string& address : settings.addresses_with_password()) common.configured_urls.emplace_back(address);
  common.config_for_command = settings.config_for_command();
  common.profile_for_command = settings.profile_for_command();
  RLOCK_TRY(fill(common, common_options(), settings));
  drop_weaker_source(common);
  return common;
}

void start_log(const CommonOptions& common) {
  const auto least = common.quiet ? log::Level::error : common.verbose ? log::Level::debug : log::Level::info;
  const bool timed = common.verbose && !log::is_journal();  // which has the time of each line
  log::start(least, common.json_log ? json_log_line : timed ? log::timed_text_format : log::text_format);
  if (common.syslog) log::to_syslog_too();
}

// Whether the line or the variable asks for JSON: what is wrong with the line is said before its options are known.
bool wants_json(const std::vector<std::string>& arguments) {
  constexpr std::string_view option = "--log-format";
  const char* variable = std::getenv("RLOCK_LOG_FORMAT");
  bool json = variable && std::string_view(variable) == "json";
  for (auto word = arguments.begin(); word != arguments.end() && *word != "--"; ++word) {
    if (*word == option && word + 1 != arguments.end()) json = *(word + 1) == "json";
    if (word->starts_with(std::string(option) + "=")) json = word->substr(option.size() + 1) == "json";
  }
  return json;
}

// Where each option that counts here comes from. Texts, addresses and owner ids may be secrets.
void report(std::span<const OptionSpec> rows, const Settings& settings) {
  for (const OptionSpec& row : rows) {
    const Setting* said = settings.find(row);
    if (!said) continue;
    const bool secret = row.value == "URL" || may_be_secret(row);
    const std::string value = secret ? "given" : escaped(said->text, 200);
    log::debug("option " + std::string(row.name()) + ": " + value + ", from " + said->origin);
  }
}

// timeout(1) and other programs mean the whole wait by that name.
void warn_of_long_timeout(const CommonOptions& common) {
  if (common.former_timeout.empty() || common.timeout <= 1min) return;
  log::warning(common.former_timeout +
               ": this is the time for one exchange with the server; use --wait to limit the wait. If you mean one "
               "exchange, call it --server-timeout");
}

Result<void> name_keys(CommonOptions&) { return {}; }

// From here on a name is the key of its lock.
Result<void> name_keys(NamingOptions& options) {
  if (!options.like && options.key_form.empty()) return {};
  const bool sorted = std::ranges::is_sorted(options.names);
  for (lock::LockName& name : options.names) {
    auto named = name.named_by(options.like, options.key_form);
    if (!named) return std::unexpected(std::move(named).error().in(options.like ? "--like " + std::string(options.like->preset) : "--key"));
    name = *std::move(named);
  }
  if (sorted) std::ranges::sort(options.names);
  return {};
}

template <std::derived_from<CommonOptions> Options>
Result<void> read(Options& options, const Parsed& parsed, const Settings& settings,
                  const std::vector<std::string>& arguments) {
  // First: a -- that is missing makes the command's options look like ours.
  RLOCK_TRY(read_words(options, parsed, arguments));
  for (const auto& part : parsed.subcommand->parts) RLOCK_TRY(fill(options, part, settings));
  RLOCK_TRY(name_keys(options));
  return complete(options);
}

// A value that no subcommand could use is an error here, too.
Result<void> check_values(const Settings& settings) {
  for (const SubcommandSpec& spec : subcommands()) {
    if (!spec.blank) continue;
    Invocation scratch = spec.blank({});
    RLOCK_TRY(std::visit(
        [&](auto& options) -> Result<void> {
          if constexpr (std::derived_from<std::remove_cvref_t<decltype(options)>, CommonOptions>) {
            for (const auto& part : spec.parts) RLOCK_TRY(fill(options, part, settings));
          }
          return {};
        },
        scratch));
  }
  return {};
}

Result<void> read(ConfigOptions& options, const Parsed& parsed, const Settings& settings,
                  const std::vector<std::string>& arguments) {
  RLOCK_TRY(read_words(options, parsed, arguments));
  for (const auto& part : parsed.subcommand->parts) RLOCK_TRY(fill(options, part, settings));
  RLOCK_TRY(check_values(settings));
  options.settings = RLOCK_TRY(shown_settings(settings, options));
  return {};
}

Result<void> read(PrintText&, const Parsed&, const Settings&, const std::vector<std::string>&) { return {}; }

}  // namespace

Result<Invocation> read_invocation(const std::vector<std::string>& arguments) {
  if (wants_json(arguments)) log::start(log::Level::info, json_log_line);
  const Parsed parsed = RLOCK_TRY(parse(arguments));
  if (!parsed.subcommand) return PrintText{parsed.version ? version_text() : parsed.text};
  const Settings settings = RLOCK_TRY(Settings::load(parsed));
  CommonOptions common = RLOCK_TRY(read_common(settings));
  start_log(common);
  warn_of_unknown_variables();
  warn_of_long_timeout(common);
  report(common_options(), settings);
  for (const auto& part : parsed.subcommand->parts) report(part, settings);

  Invocation invocation = parsed.subcommand->blank(std::move(common));
  RLOCK_TRY(std::visit([&](auto& options) { return read(options, parsed, settings, arguments); }, invocation));
  return invocation;
}

}  // namespace rlock::cli
