// SPDX-License-Identifier: MIT
// Reads the options of a command line, and the version.
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/log.h"
#include "base/text.h"
#include "cli/commands.h"
#include "options/passwords.h"
#include "options/settings.h"
#include "redis/reply.h"
#include "redis/resolve.h"
#include "redis/tls.h"
#include "show/json.h"

namespace rlock::cli {
namespace {

// The version, the commit, and the libraries.
std::string version_text() {
  std::string text = "rlock " RLOCK_VERSION "\n";
  if (!std::string_view(build_commit()).empty()) text += "commit " + std::string(build_commit()) + "\n";
  return text + "with " + redis::protocol_library() + ", " + redis::resolver_library() + ", " + redis::tls_library() +
         ", " + line_library() + ", " + json_library() + ", " + log::library() + "\n";
}

// Sets the members of `rows`, in their order.
Result<void> fill(CommonOptions& options, std::span<const OptionSpec> rows, const Settings& settings) {
  for (const OptionSpec& row : rows) {
    const Setting* said = settings.find(row);
    if (said && row.fill) RLOCK_TRY(row.fill(options, *said));
  }
  return {};
}

Result<CommonOptions> read_common(const Settings& settings) {
  CommonOptions common;
  for (const auto& [url, source, former] : settings.addresses_with_password()) {
    common.configured_urls.push_back({Secret(url), source});
  }
  common.config_for_command = settings.config_for_command();
  common.profile_for_command = settings.profile_for_command();
  RLOCK_TRY(fill(common, common_options(), settings));
  for (const OptionSpec& row : common_options()) {
    const Setting* said = row.name().starts_with("tls-") ? settings.find(row) : nullptr;
    if (said && said->source.on_command_line()) common.tls_option = said->source.text();
  }
  drop_weaker_source(common);
  return common;
}

void start_log(const CommonOptions& common) {
  const auto least = common.quiet ? log::Level::error : common.verbose ? log::Level::debug : log::Level::info;
  const bool timed = common.verbose && !log::is_journal();  // the journal adds the time itself
  log::start(least, common.json_log ? json_log_line : timed ? log::timed_text_format : log::text_format);
  if (common.syslog) log::to_syslog_too();
}

// For errors in the command line, which are reported before the options are read.
void start_early_log(const Parsed& parsed) {
  const std::string* said = parsed.text_of(log_format_option());
  const char* variable = std::getenv("RLOCK_LOG_FORMAT");
  if ((said ? *said : variable ? variable : "") == "json") log::start(log::Level::info, json_log_line);
}

// Logs each effective option and its source. Texts, addresses and owner ids may be secrets.
void report(std::span<const OptionSpec> rows, const Settings& settings) {
  for (const OptionSpec& row : rows) {
    const Setting* said = settings.find(row);
    if (!said) continue;
    const bool secret = row.value == "URL" || row.may_be_secret();
    const std::string value = secret ? "given" : escaped(said->text, 200);
    log::debug("option " + std::string(row.name()) + ": " + value + ", from " + said->source.text());
  }
}

// --server-timeout was once called --timeout, which in other programs limits the whole wait.
void warn_of_long_timeout(const CommonOptions& common, const Settings& settings) {
  for (const OptionSpec& row : common_options()) {
    const Setting* said = row.former.empty() ? nullptr : settings.find(row);
    if (!said || !said->former || common.timeout <= 1min) continue;
    log::warning(said->source.text() +
                 ": this is the time for one exchange with the server; use --wait to limit the wait, or "
                 "--server-timeout if you mean one exchange");
  }
}

// REQUIRES: it is not a PrintText.
CommonOptions& common_of(Invocation& invocation) {
  return std::visit(
      [](auto& options) -> CommonOptions& {
        if constexpr (std::derived_from<std::remove_reference_t<decltype(options)>, CommonOptions>) {
          return options;
        } else {
          std::unreachable();
        }
      },
      invocation);
}

Result<void> fill(Invocation& invocation, const SubcommandSpec& spec, const Settings& settings) {
  for (const auto& part : spec.parts) RLOCK_TRY(fill(common_of(invocation), part, settings));
  return {};
}

// Also parses the settings of all other subcommands, to find errors.
Result<void> show_settings(ConfigOptions& options, const Settings& settings) {
  for (const SubcommandSpec& spec : subcommands()) {
    if (!spec.blank) continue;
    Invocation scratch = spec.blank({});
    RLOCK_TRY(fill(scratch, spec, settings));
  }
  options.settings = RLOCK_TRY(shown_settings(settings, options));
  return {};
}

}  // namespace

Result<Invocation> read_invocation(const Parsed& parsed, const std::vector<std::string>& arguments) {
  start_early_log(parsed);
  if (parsed.error) return std::unexpected(*parsed.error);
  if (!parsed.subcommand) return PrintText{parsed.version ? version_text() : parsed.text};
  const Settings settings = RLOCK_TRY(Settings::load(parsed));
  CommonOptions common = RLOCK_TRY(read_common(settings));
  start_log(common);
  warn_of_unknown_variables();
  warn_of_long_timeout(common, settings);
  report(common_options(), settings);
  for (const auto& part : parsed.subcommand->parts) report(part, settings);

  Invocation invocation = parsed.subcommand->blank(std::move(common));
  // First, because without -- the command's options look like ours.
  RLOCK_TRY(read_words(invocation, parsed, arguments));
  RLOCK_TRY(fill(invocation, *parsed.subcommand, settings));
  RLOCK_TRY(complete(invocation));
  if (auto* config = std::get_if<ConfigOptions>(&invocation)) RLOCK_TRY(show_settings(*config, settings));
  return invocation;
}

}  // namespace rlock::cli
