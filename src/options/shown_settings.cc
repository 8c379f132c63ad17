// SPDX-License-Identifier: MIT
#include "options/shown_settings.h"

#include <cstdlib>

#include "base/text.h"
#include "options/help.h"
#include "redis/address.h"

namespace rlock::cli {
namespace {

// The addresses as they are written in a URL, without passwords.
Result<std::string> addresses_in(const std::string& text) {
  std::string shown;
  for (const std::string_view url : redis::split_addresses(text)) {
    shown += (shown.empty() ? "" : " ") + RLOCK_TRY(redis::parse_address(url)).display();
  }
  return shown;
}

Result<ShownSetting> shown(const OptionSpec& option, const Settings& settings) {
  ShownSetting one{.name = std::string(option.name()), .origin = "default"};
  const Setting* said = settings.find(option);
  if (!said) {
    const std::string_view fallback = default_of(option);
    if (!fallback.empty()) one.value = fallback;
    return one;
  }
  one.source = said->source;
  one.origin = said->origin;
  one.secret = may_be_secret(option) && option.name() != "reason";  // which status shows to everybody
  if (&option == &url_option()) {
    auto addresses = addresses_in(said->text);
    if (!addresses) return std::unexpected(blame(std::move(addresses).error(), *said));
    one.value = *std::move(addresses);
  } else if (!one.secret) {
    one.value = said->text;
  }
  return one;
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

ShownSetting from_variable(std::string name, const char* variable) {
  return {.name = std::move(name), .secret = true, .source = Source::environment, .origin = variable};
}

// The one that counts, as add_password() in options/passwords.h chooses it.
ShownSetting password(const Settings& settings, const CommonOptions& common) {
  ShownSetting one{.name = "password", .origin = "default"};
  if (const auto& from = common.password_from) {
    return {.name = one.name, .secret = true, .source = from->source, .origin = from->origin};
  }
  for (const char* variable : {"RLOCK_PASSWORD", "REDISCLI_AUTH"}) {
    if (is_set(variable)) return from_variable(one.name, variable);
  }
  const Setting* url = settings.find(url_option());
  if (!url) return one;
  for (const std::string_view address : redis::split_addresses(url->text)) {
    if (redis::password_in(address).empty()) continue;
    return {.name = one.name, .secret = true, .source = url->source, .origin = url->origin};
  }
  return one;
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

}  // namespace

bool may_be_secret(const OptionSpec& option) {
  return option.value == "ID" || option.value == "TEXT";
}

Result<std::vector<ShownSetting>> shown_settings(const Settings& settings, const CommonOptions& common) {
  std::vector<ShownSetting> all;
  Result<void> fine;
  each_distinct_setting([&](const OptionSpec& option) {
    auto one = shown(option, settings);
    if (!one) {
      if (fine) fine = std::unexpected(std::move(one).error());
      return;
    }
    // The usual files, as far as they are there.
    if (&option == &config_option() && !one->value && !settings.files().empty()) one->value = joined(settings.files());
    all.push_back(*std::move(one));
    if (&option == &url_option()) {
      all.push_back(password(settings, common));
      if (is_set("RLOCK_SENTINEL_PASSWORD")) all.push_back(from_variable("sentinel-password", "RLOCK_SENTINEL_PASSWORD"));
    }
  });
  if (!fine) return std::unexpected(std::move(fine).error());
  return all;
}

}  // namespace rlock::cli
