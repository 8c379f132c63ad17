// SPDX-License-Identifier: MIT
// Reads the options of a command line; their list for rlock config, and the version.
#include <cstdlib>

#include "cli/commands.h"
#include "completions/embedded.h"
#include "options/option_values.h"
#include "options/passwords.h"
#include "options/settings.h"
#include "redis/resolve.h"
#include "show/json.h"
#include "show/print.h"
#include "show/terminal.h"

namespace rlock::cli {
namespace {

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
  common.configured_urls = settings.addresses_with_password;
  common.config_for_command = settings.config_for_command;
  if (!settings.find(url_option())) common.url = Secret(CommonOptions::kDefaultUrl);
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
void report(const SubcommandSpec* spec, const Settings& settings) {
  for (const OptionSpec* option : options_of(spec)) {
    const Setting* said = settings.find(*option);
    if (!said) continue;
    const bool secret = option->value == "URL" || option->may_be_secret();
    const std::string value = secret ? "given" : escaped(said->text, 200);
    log::debug("option " + std::string(option->name()) + ": " + value + ", from " + said->source.text());
  }
}

Result<void> fill(Invocation& invocation, const SubcommandSpec& spec, const Settings& settings) {
  CommonOptions& options = std::visit([](CommonOptions& one) -> CommonOptions& { return one; }, invocation);
  for (const auto& part : spec.parts) RLOCK_TRY(fill(options, part, settings));
  return {};
}

Result<void> check(const Settings& settings) {
  for (const SubcommandSpec& spec : subcommands()) {
    if (!spec.blank) continue;
    Invocation scratch = spec.blank({});
    RLOCK_TRY(fill(scratch, spec, settings));
  }
  return {};
}

std::string default_of(const OptionSpec& option, const Settings& settings) {
  if (&option == &config_option()) return joined(settings.files, " ");  // the usual ones that exist
  const std::string text = option.default_text();
  return option.value.empty() && text.empty() ? "false" : text;
}

// The text of `rlock config`: the settings of all subcommands, in the order of the table, with the effective passwords
// after the address. Texts that may be secret are not shown. Also parses the settings, to find errors.
Result<std::string> settings_text(const Settings& settings, const CommonOptions& common) {
  RLOCK_TRY(check(settings));
  constexpr const char *kHidden = "(not shown)", *kSentinel = "RLOCK_SENTINEL_PASSWORD";
  std::string text;
  const auto add = [&](std::string_view name, const std::string& value, const Source& source) {
    text += line_of({std::string(name), value.empty() ? "-" : escaped(value), source.text()}, {23, 35, 0}, {}) + "\n";
  };
  for (const OptionSpec* option : all_settings()) {
    const Setting* said = settings.find(*option);
    const Setting shown = said ? *said : Setting{.text = default_of(*option, settings), .source = {}};
    if (option != &url_option()) {
      add(option->name(), said && option->may_be_secret() ? kHidden : shown.text, shown.source);
      continue;
    }
    const auto addresses = RLOCK_TRY(read_as(redis::parse_addresses, {shown.text, shown.source}));
    add(option->name(), joined(addresses, " ", &redis::Address::display), shown.source);
    const auto from = source_of_passwords(common, addresses);
    add("password", from ? kHidden : "", from.value_or(Source{}));
    if (is_set(kSentinel)) add("sentinel-password", kHidden, {Source::Kind::variable, kSentinel});
  }
  return text;
}

Result<Invocation> completion(const Parsed& parsed) {
  const bool one = parsed.names.size() == 1 && !parsed.command;
  const auto shell = choice_of(one ? parsed.names[0] : "", parsed.subcommand->synopsis);
  if (!shell) return fail(Error::Code::usage, "completion: say bash, zsh or fish");
  return PrintText{{}, kCompletions[shell->place]};
}

}  // namespace

Result<int> execute(const PrintText& options) { return print(options.text, kDone); }

Result<Invocation> read_invocation(const Parsed& parsed) {
  start_early_log(parsed);
  if (parsed.error) return std::unexpected(*parsed.error);
  if (!parsed.subcommand) return PrintText{{}, parsed.version ? version_text() : parsed.text};
  // A shell that starts asks for it, so it must not depend on a setting.
  if (parsed.subcommand->name == "completion") return completion(parsed);
  const Settings settings = RLOCK_TRY(Settings::load(parsed));
  CommonOptions common = RLOCK_TRY(read_common(settings));
  start_log(common);
  warn_of_unknown_variables();
  if (common.verbose) report(parsed.subcommand, settings);

  Invocation invocation = parsed.subcommand->blank(std::move(common));
  // First, because without -- the command's options look like ours.
  RLOCK_TRY(read_words(invocation, parsed));
  RLOCK_TRY(fill(invocation, *parsed.subcommand, settings));
  RLOCK_TRY(complete(invocation, parsed));
  if (auto* config = std::get_if<PrintText>(&invocation)) config->text = RLOCK_TRY(settings_text(settings, *config));
  return invocation;
}

}  // namespace rlock::cli
