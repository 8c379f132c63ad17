// SPDX-License-Identifier: MIT
#include "options/config_file.h"

#include <algorithm>
#include <ranges>

#include "base/text.h"

// Or toml++ has the compiler assume what a file can belie, as that a letter stands behind [.
#undef NDEBUG
#define TOML_ASSERT(expression) static_assert(true)
// Header-only: not every system has a static library of it.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0  // errors are values
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>

namespace rlock::cli {
namespace {

constexpr std::string_view kProfiles = "profile";
// In a line. toml++ takes a tree apart by recursion, and each dot of a key is a level of it, which it does not limit:
// the stack would overflow.
constexpr long kMostDots = 200;

bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// The key of `line` if a value stands behind it that begins as no string, array or table; else "".
std::string_view key_of_bare_value(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = line.find_first_not_of(kBlank), equals = line.find('=');
  const std::size_t value = line.find_first_not_of(kBlank, equals == line.npos ? equals : equals + 1);
  if (value == line.npos || std::string_view("\"'[{#").contains(line[value])) return "";
  const std::string_view key = line.substr(begin, line.find_last_not_of(kBlank, equals - 1) + 1 - begin);
  return std::ranges::all_of(key, [](char c) { return c == '.' || is_bare(c); }) ? key : "";
}

// The end of the string or the comment that begins at `at`; `at`: none does.
std::size_t end_of_free_text(std::string_view text, std::size_t at) {
  const char quote = text[at];
  if (quote == '#') return std::min(text.find('\n', at), text.size());
  if (quote != '"' && quote != '\'') return at;
  const std::string three(3, quote);
  const bool long_string = text.substr(at).starts_with(three);
  const std::string_view delimiter = text.substr(at, long_string ? 3 : 1);
  for (std::size_t i = at + delimiter.size(); i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (!long_string && text[i] == '\n') {
      return i;
    } else if (text.substr(i).starts_with(delimiter)) {
      return i + delimiter.size();
    }
  }
  return text.size();
}

// toml++ runs into what it calls unreachable at a letter beyond ASCII that is in neither string nor comment.
std::size_t first_foreign_letter(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  for (std::size_t i = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0; i < text.size();) {
    const std::size_t end = end_of_free_text(text, i);
    if (end == i && (text[i] & 0x80)) return i;
    i = std::max(end, i + 1);
  }
  return text.npos;
}

// toml++ quotes what it stumbles over. More of a value than a character may be a piece of a secret.
std::string reason_of(std::string_view description) {
  const std::size_t quote = description.find('\''), end = description.find('\'', quote + 1);
  if (end != description.npos && end - quote > 5) return "this is no TOML";
  const std::size_t context = description.find(": ");  // "Error while parsing string: "
  return escaped(description.substr(context == description.npos ? 0 : context + 2), 200);
}

// Where something stands in a file, and what is wrong there.
class Places {
 public:
  Places(const std::string& path, std::string_view text) : path_(escaped(path)) {
    for (const auto line : std::views::split(text, '\n')) lines_.emplace_back(line.begin(), line.end());
  }

  std::string of(std::size_t line) const { return path_ + ":" + std::to_string(line); }
  std::string of(const toml::node& node, const std::string& key) const {
    return of(node.source().begin.line) + ": " + escaped(key, 100);
  }

  std::unexpected<Error> bad(const toml::node& node, const std::string& key, const std::string& why) const {
    return fail(Error::Code::config, of(node, key) + ": " + why);
  }

  std::unexpected<Error> no_toml(const toml::parse_error& error) const {
    const toml::source_position at = error.source().begin;
    const bool twice = error.description().contains("redefine"), string = error.description().contains(" string");
    if (twice) {
      return fail(Error::Code::config, of(at.line) + ": this is there already, further up; leave one of them");
    }
    const std::string key =
        escaped(string || at.line > lines_.size() ? "" : key_of_bare_value(lines_[at.line - 1]), 100);
    if (key.empty()) {
      return fail(Error::Code::config,
                  of(at.line) + ": column " + std::to_string(at.column) + ": " + reason_of(error.description()));
    }
    return fail(Error::Code::config, of(at.line) + ": " + key + ": put the value in quotes: " + key + " = \"...\"");
  }

  // Refuses a file that toml++ cannot stand.
  Result<void> check(std::string_view text) const {
    if (const std::size_t letter = first_foreign_letter(text); letter != text.npos) {
      const auto line = static_cast<std::size_t>(std::ranges::count(text.substr(0, letter), '\n')) + 1;
      return fail(Error::Code::config, of(line) + ": put what holds other letters than those of ASCII in quotes");
    }
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (std::ranges::count(lines_[i], '.') <= kMostDots) continue;
      return fail(Error::Code::config, of(i + 1) + ": more than " + std::to_string(kMostDots) + " dots");
    }
    return {};
  }

 private:
  std::string path_;
  std::vector<std::string_view> lines_;
};

// Several texts.
Result<ConfigEntry> list_entry(const toml::array& values, const std::string& key, const Places& places) {
  ConfigEntry entry{.type = ConfigEntry::Type::list, .origin = places.of(values, key)};
  for (const toml::node& value : values) {
    const auto* text = value.as_string();
    if (!text) return places.bad(values, key, "a setting has one value; only url may be a list, of texts in quotes");
    entry.text += (entry.text.empty() ? "" : " ") + text->get();
  }
  if (entry.text.empty()) return places.bad(values, key, "this list is empty; put a text in quotes");
  return entry;
}

// `key` is the whole one, with its tables.
Result<ConfigEntry> entry_of(const toml::node& value, const std::string& key, const Places& places) {
  using Type = ConfigEntry::Type;
  ConfigEntry entry{.origin = places.of(value, key)};
  if (const auto* text = value.as_string()) {
    entry.text = text->get();
  } else if (const auto* flag = value.as_boolean()) {
    entry.type = Type::flag;
    entry.text = flag->get() ? "true" : "false";
  } else if (const auto* number = value.as_integer()) {
    entry.type = Type::number;
    entry.text = std::to_string(number->get());
  } else if (value.is_array()) {
    return list_entry(*value.as_array(), key, places);
  } else if (value.is_table()) {
    return places.bad(value, key, "this table is not known; only [profile.NAME] is");
  } else {
    return places.bad(value, key, "put the value in quotes");  // a date, a time, or a number with a point
  }
  return entry;
}

Result<void> add_entries(ConfigFile& file, const toml::table& table, const std::string& profile, const Places& places) {
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    if (profile.empty() && name == kProfiles) continue;
    const std::string full = profile.empty() ? name : std::string(kProfiles) + "." + profile + "." + name;
    file.entries.push_back(RLOCK_TRY(entry_of(value, full, places)));
    file.entries.back().profile = profile;
    file.entries.back().name = name;
  }
  return {};
}

Result<void> add_profiles(ConfigFile& file, const toml::table& root, const Places& places) {
  const toml::node* found = root.get(kProfiles);
  if (!found) return {};
  const std::string all(kProfiles);
  if (!found->is_table()) {
    return places.bad(*found, all, "settings of a profile stand in a table [profile.NAME]; --profile chooses it");
  }
  for (const auto& [key, profile] : *found->as_table()) {
    const std::string name(key.str()), full = all + "." + name;
    if (!profile.is_table()) return places.bad(profile, full, "settings of a profile stand in a table [profile.NAME]");
    if (!is_profile_name(name)) return places.bad(profile, full, "a profile's name has letters, digits, - and _");
    file.profiles.push_back(name);
    RLOCK_TRY(add_entries(file, *profile.as_table(), name, places));
  }
  return {};
}

}  // namespace

bool is_profile_name(std::string_view name) { return !name.empty() && std::ranges::all_of(name, is_bare); }

Result<ConfigFile> read_config(const std::string& path, std::string_view text) {
  const Places places(path, text);
  RLOCK_TRY(places.check(text));
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) return places.no_toml(parsed.error());
  ConfigFile file;
  RLOCK_TRY(add_entries(file, parsed.table(), "", places));
  RLOCK_TRY(add_profiles(file, parsed.table(), places));
  return file;
}

std::string toml_library() {
  return "toml++ " + std::to_string(TOML_LIB_MAJOR) + "." + std::to_string(TOML_LIB_MINOR) + "." +
         std::to_string(TOML_LIB_PATCH);
}

}  // namespace rlock::cli
