// SPDX-License-Identifier: MIT
// completions_gen TEMPLATES SCRIPTS HEADER: generates the completions of all shells from the table of options, at build
// time: a script in the folder SCRIPTS for each template in the folder TEMPLATES, and a header with their texts.
// Replaces each line @PLACE@ of a template. Fails if the table has an unknown kind of argument, or a template an
// unknown place.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "options/help.h"
#include "options/options.h"

namespace rlock::cli {
namespace {

[[noreturn]] void give_up(const std::string& why) {
  std::cerr << "completions_gen: " << why << "\n";
  std::exit(1);
}

std::string replaced(std::string_view text, const std::map<char, std::string_view>& by) {
  std::string out;
  for (const char c : text) {
    const auto found = by.find(c);
    found == by.end() ? out += c : out += found->second;
  }
  return out;
}

// "-w", "--wait"
std::vector<std::string> names_of(const OptionSpec& spec) {
  const std::string name = "--" + std::string(spec.name());
  if (spec.letter() == '\0') return {name};
  return {{'-', spec.letter()}, name};
}

// The kind of an option's value: DUR, FILE, NAME (of a lock), PID, URL, "kill|wait|ignore" or FREE; empty for a flag.
std::string kind_of(const OptionSpec& spec) {
  const std::string value(spec.value);
  if (value.contains('|')) return value;
  if (value == "TIME") return "DUR";                    // or a date
  if (value == "PERIOD") return "hour|day|week|month";  // or a duration
  for (const char* known : {"", "DUR", "FILE", "NAME", "PID", "URL"}) {
    if (value == known) return value;
  }
  for (const char* free : {"N", "K", "LIST", "SLOT", "TEXT", "ID", "KEY", "ZONE", "USER", "HOST"}) {
    if (value == free) return "FREE";
  }
  give_up("--" + std::string(spec.name()) + ": how is " + value + " completed?");
}

// The kind of a subcommand's other words, which its synopsis begins with; also NAME and SUBCOMMAND.
std::string kind_of_words(const SubcommandSpec& spec) {
  std::string word(spec.synopsis.substr(0, spec.synopsis.find(' ')));
  std::erase_if(word, [](char c) { return c == '[' || c == ']' || c == '.'; });
  if (word.empty() || word == "NAME" || word == "SUBCOMMAND" || word.contains('|')) return word;
  if (word == "PREFIX") return "";
  give_up(std::string(spec.name) + ": how is " + word + " completed?");
}

using Use = std::function<void(const std::string& subcommand, const OptionSpec& spec)>;

// Calls `use` for the options of each subcommand, then for the common options with an empty subcommand.
void each_option(const Use& use) {
  for (const SubcommandSpec& subcommand : subcommands()) {
    for (const OptionSpec& spec : subcommand.options()) use(std::string(subcommand.name), spec);
  }
  for (const OptionSpec& spec : common_options()) use("", spec);
  for (const OptionSpec& spec : informing_options()) use("", spec);
}

// True if a completion needs the option to find the same server, without questions and in a short time.
bool about_server(const OptionSpec& spec) {
  static constexpr std::string_view kOthers[] = {"ask-password", "server-timeout", "quiet", "verbose", "log-format"};
  return std::ranges::find(kOthers, spec.name()) == std::end(kOthers);
}

// "--url|--config|…": those with a value, or those without.
std::string server_options(bool with_value, const std::string& between) {
  std::vector<std::string> names;
  for (const OptionSpec& spec : common_options()) {
    if (about_server(spec) && spec.value.empty() != with_value) names.push_back("--" + std::string(spec.name()));
  }
  return joined(names, between);
}

std::string subcommands_if(bool (*wanted)(const SubcommandSpec&), const std::string& between) {
  std::vector<std::string> names;
  for (const SubcommandSpec& spec : subcommands()) {
    if (wanted(spec)) names.emplace_back(spec.name);
  }
  return joined(names, between);
}

bool any(const SubcommandSpec&) { return true; }
bool takes_command(const SubcommandSpec& spec) { return spec.command != nullptr; }

// The text of each place.
using Places = std::map<std::string, std::string>;

Places for_bash() {
  Places places;
  std::map<std::string, std::string> words;
  each_option([&](const std::string& subcommand, const OptionSpec& spec) {
    const std::vector<std::string> names = names_of(spec);
    words[subcommand] += joined(names, " ") + " ";
    const std::string kind = kind_of(spec);
    if (kind.empty()) return;
    std::vector<std::string> patterns;
    for (const std::string& name : names) {
      patterns.push_back((subcommand.empty() ? "*' " : "'" + subcommand + " ") + name + "'");
    }
    places["KINDS"] += "    " + joined(patterns, " | ") + ") kind='" + kind + "' ;;\n";
  });
  for (const SubcommandSpec& spec : subcommands()) {
    const std::string name(spec.name);
    places["OPTIONS"] += "    " + name + ") options+=(" + words[name] + ") ;;\n";
    places["WORDS"] += "    " + name + ") kind='" + kind_of_words(spec) + "' ;;\n";
  }
  places["COMMON"] = "  options=(" + words[""] + ")\n";
  places["SUBCOMMANDS"] = "  subcommands=(" + subcommands_if(any, " ") + ")\n";
  places["WITH_COMMAND"] = "    " + subcommands_if(takes_command, " | ") + ") return 0 ;;\n";
  places["SERVER_VALUES"] = "    " + server_options(true, " | ") + ") return 0 ;;\n";
  places["SERVER_FLAGS"] = "    " + server_options(false, " | ") + ") return 0 ;;\n";
  return places;
}

std::string zsh_text(std::string_view text) {
  return replaced(text, {{'[', "\\["}, {']', "\\]"}, {':', "\\:"}, {'\\', "\\\\"}, {'\'', "'\\''"}});
}

std::string zsh_action(const std::string& kind) {
  static const std::map<std::string, std::string> actions = {{"DUR", "_rlock_durations"},
                                                             {"FILE", "_files"},
                                                             {"URL", "_rlock_urls"},
                                                             {"PID", "_pids"},
                                                             {"NAME", "_rlock_names"},
                                                             {"SUBCOMMAND", "_rlock_subcommands"},
                                                             {"FREE", " "}};
  if (kind.contains('|')) return "(" + replaced(kind, {{'|', " "}}) + ")";
  return actions.at(kind);
}

// '(-w --wait)'{-w+,--wait=}'[wait no longer than DUR]:DUR:_rlock_durations'
std::string zsh_option(const OptionSpec& spec) {
  const std::vector<std::string> names = names_of(spec);
  const std::string kind = kind_of(spec);
  std::vector<std::string> forms = names;
  if (!kind.empty()) {
    for (std::string& form : forms) form += form.starts_with("--") ? "=" : "+";
  }
  std::string rest = "[" + zsh_text(in_short(spec.help)) + "]";
  if (!kind.empty()) rest += ":" + zsh_text(spec.value) + ":" + zsh_action(kind);
  if (forms.size() == 1) return "'" + forms[0] + rest + "'";
  return "'(" + joined(names, " ") + ")'{" + joined(forms, ",") + "}'" + rest + "'";
}

Places for_zsh() {
  Places places;
  std::map<std::string, std::string> own;
  each_option([&](const std::string& subcommand, const OptionSpec& spec) {
    const std::string indent = subcommand.empty() ? "    " : "        ";
    own[subcommand] += indent + zsh_option(spec) + "\n";
  });
  places["COMMON"] = own[""];
  for (const SubcommandSpec& spec : subcommands()) {
    const std::string name(spec.name), kind = kind_of_words(spec);
    places["SUBCOMMANDS"] += "    '" + name + ":" + zsh_text(spec.summary) + "'\n";
    const std::string many = spec.synopsis.contains("...") ? "*" : "1";
    const std::string words = kind.empty() ? "" : "        '" + many + ":" + kind + ":" + zsh_action(kind) + "'\n";
    places["ARGUMENTS"] += "    " + name + ")\n      own=(\n" + own[name] + words + "      )\n      ;;\n";
  }
  places["WITH_COMMAND"] = "    (" + subcommands_if(takes_command, "|") + ") return 0 ;;\n";
  places["SERVER_VALUES"] = "      (" + server_options(true, "|") + ")\n";
  places["SERVER_FLAGS"] = "      (" + server_options(false, "|") + ")\n";
  return places;
}

std::string fish_text(std::string_view text) { return "'" + replaced(text, {{'\\', "\\\\"}, {'\'', "\\'"}}) + "'"; }

std::string fish_arguments(const std::string& kind) {
  static const std::map<std::string, std::string> functions = {{"DUR", "__rlock_durations"},
                                                               {"URL", "__rlock_urls"},
                                                               {"PID", "__fish_complete_pids"},
                                                               {"NAME", "__rlock_names"},
                                                               {"SUBCOMMAND", "__rlock_subcommands"}};
  if (kind == "FILE") return " -r -F";
  if (kind == "FREE") return " -x";
  if (kind.contains('|')) return " -x -a '" + replaced(kind, {{'|', " "}}) + "'";
  return " -x -a '(" + functions.at(kind) + ")'";
}

Places for_fish() {
  Places places;
  each_option([&](const std::string& subcommand, const OptionSpec& spec) {
    std::string line = "complete -c rlock";
    if (!subcommand.empty()) line += " -n '__rlock_at " + subcommand + "'";
    if (spec.letter() != '\0') line += std::string(" -s ") + spec.letter();
    line += " -l " + std::string(spec.name()) + " -d " + fish_text(in_short(spec.help));
    if (const std::string kind = kind_of(spec); !kind.empty()) line += fish_arguments(kind);
    places["OPTIONS"] += line + "\n";
  });
  for (const SubcommandSpec& spec : subcommands()) {
    const std::string name(spec.name), text = fish_text(spec.summary), kind = kind_of_words(spec);
    places["LIST"] += "    printf '%s\\t%s\\n' " + name + " " + text + "\n";
    if (kind.empty()) continue;
    places["WORDS"] += "complete -c rlock -n '__rlock_at " + name + "'" + fish_arguments(kind) + "\n";
  }
  places["WITH_COMMAND"] = "            case " + subcommands_if(takes_command, " ") + "\n";
  places["SERVER_VALUES"] = "            case " + server_options(true, " ") + "\n";
  places["SERVER_FLAGS"] = "            case " + server_options(false, " ") + "\n";
  std::vector<std::string> values;
  for (const OptionSpec& spec : common_options()) {
    if (!spec.value.empty()) values.push_back("--" + std::string(spec.name()));
  }
  places["WITH_VALUE"] = "            case " + joined(values, " ") + "\n";
  return places;
}

std::string generate(const std::string& file, const Places& places) {
  std::ifstream in(file);
  std::string script;
  for (std::string line; std::getline(in, line);) {
    if (line.size() < 3 || line.front() != '@' || line.back() != '@') {
      script += line + "\n";
      continue;
    }
    const auto place = places.find(line.substr(1, line.size() - 2));
    if (place == places.end()) give_up("the template has an unknown place " + line);
    script += place->second;
  }
  if (!in.eof()) give_up("cannot read " + file);
  return script;
}

// In the order of the words of `rlock completion`.
int generate_all(const std::string& templates, const std::string& scripts, const std::string& header) {
  std::ofstream texts(header);
  texts << "#pragma once\nnamespace rlock::cli {\ninline constexpr const char* kCompletions[] = {\n";
  for (const auto& [name, file, places] : {std::tuple{"rlock.bash.in", "rlock", for_bash()},
                                           {"_rlock.in", "_rlock", for_zsh()},
                                           {"rlock.fish.in", "rlock.fish", for_fish()}}) {
    const std::string script = generate(templates + "/" + name, places);
    std::ofstream out(scripts + "/" + file);
    if (!(out << script << std::flush)) give_up(std::string("cannot write ") + file);
    texts << "R\"SCRIPT(" << script << ")SCRIPT\",\n";
  }
  texts << "};\n}\n" << std::flush;
  return texts ? 0 : 1;
}

}  // namespace
}  // namespace rlock::cli

int main(int argc, char** argv) { return argc == 4 ? rlock::cli::generate_all(argv[1], argv[2], argv[3]) : 1; }
