// SPDX-License-Identifier: MIT
// rlock config: shows the effective settings and where they come from.
#include <string>

#include "base/text.h"
#include "cli/commands.h"
#include "show/json.h"
#include "show/print.h"
#include "show/terminal.h"

namespace rlock::cli {
namespace {

std::string in_words(const std::vector<ShownSetting>& settings) {
  std::string text;
  for (const ShownSetting& setting : settings) {
    const std::string value = setting.secret ? "(not shown)" : setting.value ? escaped(*setting.value) : "-";
    text += line_of({setting.name, value, setting.source.text()}, {23, 35, 0}, {}) + "\n";
  }
  return text;
}

std::string in_json(const std::vector<ShownSetting>& settings) {
  constexpr std::string_view sources[] = {"option", "environment", "profile", "file", "default"};
  std::vector<JsonObject> objects;
  for (const ShownSetting& setting : settings) {
    objects.push_back({{"setting", setting.name},
                       {"value", setting.value ? JsonValue(*setting.value) : JsonValue(nullptr)},
                       {"secret", setting.secret},
                       {"source", std::string(sources[static_cast<std::size_t>(setting.source.kind)])},
                       {"origin", setting.source.text()}});
  }
  return objects_json(objects);
}

}  // namespace

Result<int> execute(const ConfigOptions& options) {
  return print(options.json ? in_json(options.settings) : in_words(options.settings), kDone);
}

}  // namespace rlock::cli
