// SPDX-License-Identifier: MIT
#include <functional>

#include "options/option_values.h"
#include "options/passwords.h"
#include "options/settings.h"
#include "redis/address.h"

namespace rlock::cli {
namespace {

// Separated by spaces.
template <class Words, class Text = std::identity>
std::string joined(const Words& words, Text text = {}) {
  std::string line;
  for (const auto& word : words) line += (line.empty() ? "" : " ") + text(word);
  return line;
}

Result<std::vector<redis::Address>> addresses_in(const std::string& text) {
  std::vector<redis::Address> all;
  for (const std::string_view url : redis::split_addresses(text)) all.push_back(RLOCK_TRY(redis::parse_address(url)));
  return all;
}

ShownSetting shown(const OptionSpec& option, const Settings& settings) {
  ShownSetting one{.name = std::string(option.name())};
  if (const Setting* said = settings.find(option)) {
    one.source = said->source;
    one.secret = option.may_be_secret();
    if (!one.secret) one.value = said->text;
  } else {
    const std::string fallback = option.value.empty() ? "false" : option.default_text();
    if (!fallback.empty()) one.value = fallback;
  }
  return one;
}

// The password that client_for() would use.
ShownSetting shown_password(const CommonOptions& common, const std::vector<redis::Address>& addresses) {
  bool in_address = false;
  const ConfiguredUrl* configured = nullptr;
  for (const redis::Address& address : addresses) {
    in_address = in_address || address.server.password;
    if (!configured) configured = configured_for(common, address);
  }
  ShownSetting one{.name = "password", .secret = true};
  const PasswordsThere there{is_set("RLOCK_PASSWORD"), is_set("REDISCLI_AUTH"), in_address, configured != nullptr};
  switch (password_place(common, there)) {
    case PasswordPlace::named: one.source = common.password_from->source; break;
    case PasswordPlace::variable: one.source = {Source::Kind::variable, "RLOCK_PASSWORD"}; break;
    case PasswordPlace::redis_cli: one.source = {Source::Kind::variable, "REDISCLI_AUTH"}; break;
    case PasswordPlace::address: one.source = common.url_source; break;
    case PasswordPlace::configured: one.source = configured->source; break;
    case PasswordPlace::none: one.secret = false; break;
  }
  return one;
}

}  // namespace

Result<std::vector<ShownSetting>> shown_settings(const Settings& settings, const CommonOptions& common) {
  std::vector<ShownSetting> all;
  for (const OptionSpec* option : all_settings()) {
    all.push_back(shown(*option, settings));
    // The usual files, if they exist.
    if (option == &config_option() && !all.back().value && !settings.files().empty()) {
      all.back().value = joined(settings.files());
    }
    if (option != &url_option()) continue;
    const auto addresses = RLOCK_TRY(read_as(addresses_in, {*all.back().value, all.back().source}));
    all.back().value = joined(addresses, [](const redis::Address& one) { return one.display(); });
    all.push_back(shown_password(common, addresses));
    constexpr const char* kSentinel = "RLOCK_SENTINEL_PASSWORD";
    if (!is_set(kSentinel)) continue;
    all.push_back({.name = "sentinel-password", .secret = true, .source = {Source::Kind::variable, kSentinel}});
  }
  return all;
}

}  // namespace rlock::cli
