// SPDX-License-Identifier: MIT
#include <algorithm>
#include <string>

#include "base/text.h"
#include "cli/commands.h"
#include "show/json.h"
#include "show/print.h"

namespace rlock::cli {
namespace {

constexpr std::size_t kNameWidth = 25, kValueWidth = 37;

void fill_up(std::string& line, std::size_t shown, std::size_t width) {
  line.append(shown < width ? width - shown : 1, ' ');
}

std::string in_words(const std::vector<ShownSetting>& settings) {
  std::string text;
  for (const ShownSetting& setting : settings) {
    std::string line = setting.name;
    fill_up(line, line.size(), kNameWidth);
    const std::string value = setting.secret ? "(not shown)" : setting.value ? escaped(*setting.value) : "-";
    line += value;
    fill_up(line, columns(value), kValueWidth);
    text += line + setting.source.text() + "\n";
  }
  return text;
}

std::string in_json(const std::vector<ShownSetting>& settings) {
  constexpr std::string_view sources[] = {"option", "environment", "profile", "file", "default"};
  std::vector<std::string> origins;
  for (const ShownSetting& setting : settings) origins.push_back(setting.source.text());
  std::vector<JsonObject> objects;
  for (const ShownSetting& setting : settings) {
    objects.push_back({{"setting", setting.name},
                       {"value", setting.value ? JsonValue(*setting.value) : JsonValue(nullptr)},
                       {"secret", setting.secret},
                       {"source", sources[static_cast<std::size_t>(setting.source.kind)]},
                       {"origin", origins[objects.size()]}});
  }
  return objects_json(objects);
}

}  // namespace

Result<int> execute(const ConfigOptions& options) {
  return print(options.json ? in_json(options.settings) : in_words(options.settings), kDone);
}

}  // namespace rlock::cli
