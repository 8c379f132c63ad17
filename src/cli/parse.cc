// SPDX-License-Identifier: MIT
#include "cli/parse.h"

#include <CLI/CLI.hpp>
#include <sstream>

#include "base/text.h"
#include "cli/suggest.h"

namespace rlock::cli {
namespace {

// "--wait DUR" where CLI11 would write "--wait DUR x 1 ..."; the usage line is ours.
class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat() { column_width(34); }
  std::string make_usage(const CLI::App*, std::string) const override { return "\n"; }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : " " + option->get_type_name();
  }
};

// Describes `options` to `app`. CLI11 only takes the texts apart: what they mean is decided later.
void add_options(CLI::App& app, std::span<const OptionSpec> options, const std::string& group) {
  for (const OptionSpec& spec : options) {
    const std::string names(spec.names), help(spec.help);
    CLI::Option* option = spec.value.empty() ? app.add_flag(names, help) : app.add_option(names, help);
    option->group(group)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    if (!spec.value.empty()) option->type_name(std::string(spec.value))->type_size(1);
  }
}

// Moves what was given for `options` from CLI11 to `parsed`.
Result<void> collect(const CLI::App& app, std::span<const OptionSpec> options, Parsed& parsed) {
  for (const OptionSpec& spec : options) {
    const CLI::Option* option = app.get_option("--" + std::string(spec.name()));
    if (option->count() == 0) continue;
    const bool flag = spec.value.empty();
    const bool before = parsed.options.contains(spec.name());
    if (!flag && (option->count() > 1 || before)) {
      return fail(Error::Code::usage,
                  "--" + std::string(spec.name()) + " is given twice" +
                      (spec.name() == "url" ? "; locks over several servers are not supported" : ""));
    }
    parsed.options.insert_or_assign(std::string(spec.name()), flag ? "true" : option->results().front());
  }
  return {};
}

std::vector<std::string_view> option_words(const SubcommandSpec* spec) {
  std::vector<std::string_view> words = {"--help", "--version"};
  const auto add = [&](std::span<const OptionSpec> options) {
    for (const OptionSpec& option : options) words.push_back(option.names.substr(option.names.find("--")));
  };
  add(common_options());
  if (spec) add(spec->options);
  return words;
}

std::string where(const SubcommandSpec* spec) { return spec ? std::string(spec->name) + ": " : ""; }

std::unexpected<Error> unknown_option(const std::string& word, const SubcommandSpec* spec) {
  const std::string name = word.substr(0, word.find('='));
  return fail(Error::Code::usage, where(spec) + "unknown option " + escaped(name, 100) +
                                      suggestion(name, option_words(spec)) + "; see rlock " +
                                      (spec ? std::string(spec->name) + " " : "") + "--help");
}

std::unexpected<Error> unknown_subcommand(const std::string& word) {
  std::vector<std::string_view> names;
  for (const SubcommandSpec& spec : subcommands()) names.push_back(spec.name);
  return fail(Error::Code::usage,
              "unknown subcommand " + in_quotes(word) + suggestion(word, names) + "; see rlock --help");
}

// CLI11's text for the options, without its usage line, and with single empty lines between groups.
std::string options_help(const CLI::App& app) {
  std::string text = app.help();
  text.erase(0, text.find('\n') + 1);
  for (auto at = text.find("\n\n\n"); at != std::string::npos; at = text.find("\n\n\n")) text.erase(at, 1);
  return text;
}

std::string top_help(const CLI::App& app) {
  std::string text =
      "rlock - run a command under a lock that many hosts share through Redis\n\n"
      "Usage: rlock [options] SUBCOMMAND ...\n\nSubcommands:\n";
  for (const SubcommandSpec& spec : subcommands()) {
    text += "  " + std::string(spec.name) + std::string(14 - spec.name.size(), ' ') + std::string(spec.summary) + "\n";
  }
  return text + options_help(app) +
         "\nTry it:   rlock --url local: run hello -- echo \"I have the lock\"\n"
         "Learn it: rlock SUBCOMMAND --help, man rlock\n";
}

std::string subcommand_help(const CLI::App& app, const SubcommandSpec& spec) {
  return "rlock " + std::string(spec.name) + " - " + std::string(spec.summary) + "\n\nUsage: rlock " +
         std::string(spec.name) + " [options] " + std::string(spec.synopsis) + "\n" + options_help(app) + "\n" +
         std::string(spec.notes);
}

void describe(CLI::App& app, const std::string& common_group) {
  app.formatter(std::make_shared<HelpFormat>());
  app.set_help_flag("-h,--help", "print this help")->group(common_group);
  const std::string version_help = "print the version";
  app.add_flag("-V,--version", version_help)->group(common_group);
  add_options(app, common_options(), common_group);
}

// CLI11 would take the next word for the value of `--name=`, which has an empty one.
std::vector<std::string> with_empty_values(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) {
    if (word.size() > 3 && word.starts_with("--") && word.find('=') == word.size() - 1) {
      out.push_back(word.substr(0, word.size() - 1));
      out.emplace_back();
    } else {
      out.push_back(word);
    }
  }
  return out;
}

// Lets CLI11 take `words` apart. False: help was asked for.
Result<bool> take_apart(CLI::App& app, std::vector<std::string> words, const SubcommandSpec* spec) {
  std::reverse(words.begin(), words.end());  // as CLI11 wants them
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ArgumentMismatch& error) {
    // "--owner: 1 required ID missing"
    std::string text = error.what();
    if (const auto at = text.find(": 1 required "); at != std::string::npos) {
      text = text.substr(0, at) + " wants " + text.substr(at + 13, text.rfind(' ') - at - 13);
    }
    return fail(Error::Code::usage, where(spec) + escaped(text, 300));
  } catch (const CLI::ParseError& error) {
    return fail(Error::Code::usage, where(spec) + escaped(error.what(), 300));
  }
  return true;
}

Parsed version() { return Parsed{.text = "rlock " RLOCK_VERSION "\n"}; }

// What stands from the subcommand on. An application of its own: a lock may be called as a subcommand is.
Result<Parsed> parse_subcommand(const SubcommandSpec& spec, std::vector<std::string> words, Parsed parsed) {
  CLI::App app;
  add_options(app, spec.options, "Options");
  describe(app, "Options of all subcommands");
  app.allow_extras();
  if (!RLOCK_TRY(take_apart(app, std::move(words), &spec))) return Parsed{.text = subcommand_help(app, spec)};
  if (app.count("--version") > 0) return version();

  parsed.subcommand = &spec;
  RLOCK_TRY(collect(app, common_options(), parsed));
  RLOCK_TRY(collect(app, spec.options, parsed));
  for (const std::string& word : app.remaining()) {
    // After its name this may be an option of a command that lacks its --: the caller says so.
    const bool has_command = parsed.command || parsed.options.contains("command");
    const bool maybe_command = spec.takes_command && !parsed.names.empty() && !has_command;
    if (word.size() > 1 && word.front() == '-' && !maybe_command) return unknown_option(word, &spec);
    parsed.names.push_back(word);
  }
  return parsed;
}

// The text without its comments. CLI11 would cut a quoted value at a # in it.
std::string without_comments(const std::string& text) {
  std::string out;
  char quote = 0;
  bool comment = false;
  for (const char c : text) {
    if (c == '\n') {
      comment = false;
      quote = 0;
    } else if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      comment = true;
    }
    if (!comment) out += c;
  }
  return out;
}

}  // namespace

Result<Parsed> parse(const std::vector<std::string>& arguments) {
  // CLI11 must not see the command: it would take its options for ours.
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  CLI::App app;
  describe(app, "Options");
  app.prefix_command();  // stop at the subcommand
  auto words = with_empty_values({arguments.begin(), dashes});
  if (!RLOCK_TRY(take_apart(app, std::move(words), nullptr))) return Parsed{.text = top_help(app)};
  if (app.count("--version") > 0) return version();

  Parsed parsed;
  RLOCK_TRY(collect(app, common_options(), parsed));
  if (dashes != arguments.end()) parsed.command.emplace(dashes + 1, arguments.end());
  std::vector<std::string> rest = app.remaining();
  if (rest.empty()) return fail(Error::Code::usage, "a subcommand is missing; see rlock --help");
  const std::string word = rest.front();
  if (word.starts_with('-')) return unknown_option(word, nullptr);
  const SubcommandSpec* spec = find_subcommand(word);
  if (!spec) return unknown_subcommand(word);
  rest.erase(rest.begin());
  return parse_subcommand(*spec, std::move(rest), std::move(parsed));
}

Result<std::vector<std::pair<std::string, std::string>>> read_toml(const std::string& text) {
  std::istringstream stream(without_comments(text));
  std::vector<std::pair<std::string, std::string>> pairs;
  CLI::ConfigTOML toml;
  toml.comment('\0');  // there are none left
  try {
    for (const CLI::ConfigItem& item : toml.from_config(stream)) {
      if (!item.parents.empty() || item.name == "++" || item.name == "--") {
        return fail(Error::Code::config, "tables such as [" +
                                             escaped(item.parents.empty() ? "" : item.parents.front(), 50) +
                                             "] are not known; write key = value");
      }
      if (item.inputs.size() != 1) return fail(Error::Code::config, escaped(item.name, 100) + ": wants one value");
      pairs.emplace_back(item.name, item.inputs.front());
    }
  } catch (const CLI::Error& error) {
    return fail(Error::Code::config, escaped(error.what(), 300));
  }
  return pairs;
}

}  // namespace rlock::cli
