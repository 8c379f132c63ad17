// SPDX-License-Identifier: MIT
#include "options/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.h"
#include "options/help.h"
#include "options/suggest.h"

namespace rlock::cli {
namespace {

// Whether it may stand on the line: its long name does, or its letter stands behind a dash.
bool may_stand_in(std::span<const std::string> words, const OptionSpec& spec) {
  const char letter = spec.names.starts_with("--") ? '\0' : spec.names[1];
  return std::ranges::any_of(words, [&](std::string_view word) {
    if (!word.starts_with('-')) return false;
    if (!word.starts_with("--")) return letter != '\0' && word.find(letter) != std::string_view::npos;
    return spec.is_called(word.substr(2, word.find('=') - 2));
  });
}

// An option as CLI11 knows it.
struct Described {
  const OptionSpec& spec;
  CLI::Option* option;
  bool former = false;  // by its former name
};

// Describes those of `options` to `app` that may stand on the line: to describe one costs CLI11 more than to read it.
// It only takes the texts apart; what they mean is decided later.
void describe(CLI::App& app, std::span<const std::string> words, std::span<const OptionSpec> options,
              std::vector<Described>& described) {
  for (const OptionSpec& spec : options) {
    if (!may_stand_in(words, spec)) continue;
    const auto add = [&](const std::string& names, bool former) {
      CLI::Option* option = spec.value.empty() ? app.add_flag(names) : app.add_option(names);
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      if (!spec.value.empty()) option->type_name(std::string(spec.value))->type_size(1);
      described.push_back({spec, option, former});
    };
    add(std::string(spec.names), false);
    if (!spec.former.empty()) add("--" + std::string(spec.former), true);
  }
}

// The same for the options of any subcommand.
std::vector<Described> describe_common(CLI::App& app, std::span<const std::string> words) {
  std::vector<Described> described;
  app.add_flag("-V,--version");
  describe(app, words, common_options(), described);
  return described;
}

// The option whose text is a command, as it is found on the line.
struct CommandFound {
  int times = 0;
  std::size_t names_in_front = 0;
};

// Has CLI11 tell when it finds `command`. As it then forgets the text of an earlier one, these are counted here.
void note_command(CLI::App& app, std::span<const Described> described, const OptionSpec* command, CommandFound& found) {
  const auto at = std::ranges::find(described, command, [](const Described& one) { return &one.spec; });
  if (at == described.end()) return;
  at->option->trigger_on_parse()->each([&](const std::string&) {
    ++found.times;
    found.names_in_front = app.remaining_size();
  });
}

// Several of them are those of a quorum.
void add_addresses(const std::vector<std::string>& given, std::string& all) {
  for (const std::string& address : given) all += (all.empty() ? "" : " ") + address;
}

std::unexpected<Error> given_twice(const OptionSpec& spec) {
  return fail(Error::Code::usage, "--" + std::string(spec.name()) + " is given twice");
}

// Moves what was given from CLI11 to `parsed`.
Result<void> collect(std::span<const Described> described, Parsed& parsed) {
  for (const auto& [spec, option, former] : described) {
    if (option->count() == 0) continue;
    const bool flag = spec.value.empty();
    if (&spec == &url_option()) {
      add_addresses(option->results(), parsed.options[&spec]);
      continue;
    }
    if (!flag && (option->count() > 1 || parsed.text_of(spec))) {
      return given_twice(spec);
    }
    if (former) parsed.by_former_name.insert(&spec);
    parsed.options.insert_or_assign(&spec, option->results().back());  // of a flag "true", or what stands behind its =
  }
  return {};
}

std::vector<std::string_view> option_words(const SubcommandSpec* spec) {
  std::vector<std::string_view> words;
  const auto add = [&](std::span<const OptionSpec> options) {
    for (const OptionSpec& option : options) words.push_back(option.names.substr(option.names.find("--")));
  };
  add(informing_options());
  add(common_options());
  if (spec) std::ranges::for_each(spec->parts, add);
  return words;
}

std::string where(const SubcommandSpec* spec) { return spec ? std::string(spec->name) + ": " : ""; }

// The end of a message: a suggestion, if there is one, and the help to see.
std::string hints(const std::string& suggested, const std::string& help) {
  return suggested + (suggested.empty() ? "; see " : " See ") + help;
}

std::unexpected<Error> unknown_option(const std::string& word, const SubcommandSpec* spec) {
  const std::string name = word.substr(0, word.find('='));
  const std::string help = "rlock " + (spec ? std::string(spec->name) + " " : "") + "--help";
  return fail(Error::Code::usage, where(spec) + "unknown option " + escaped(name, 100) +
                                      hints(suggestion(name, option_words(spec)), help));
}

// Subcommands as other programs call them.
constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
    {"list", "status"},  {"ls", "status"},      {"ps", "status"}, {"show", "status"},
    {"lock", "acquire"}, {"unlock", "release"}, {"exec", "run"},  {"break", "force-unlock"},
};

std::unexpected<Error> unknown_subcommand(const std::string& word) {
  const auto* elsewhere = std::ranges::find(kElsewhere, word, &std::pair<std::string_view, std::string_view>::first);
  if (elsewhere != std::end(kElsewhere)) {
    return fail(Error::Code::usage, "unknown subcommand " + in_quotes(word) + "; did you mean rlock " +
                                        std::string(elsewhere->second) + "? See rlock --help");
  }
  std::vector<std::string_view> names;
  for (const SubcommandSpec& spec : subcommands()) names.push_back(spec.name);
  return fail(Error::Code::usage,
              "unknown subcommand " + in_quotes(word) + hints(suggestion(word, names), "rlock --help"));
}

bool is_flag(const CLI::Option& option) { return option.get_expected_max() == 0; }

// Whether an option whose value is the next word ends in `word`.
bool wants_next_word(const CLI::App& app, const std::string& word) {
  if (!word.starts_with('-')) return false;
  if (word.starts_with("--")) {
    const CLI::Option* option = app.get_option_no_throw(word);
    return option && !is_flag(*option);
  }
  for (std::size_t i = 1; i < word.size(); ++i) {
    const CLI::Option* option = app.get_option_no_throw({'-', word[i]});
    if (!option) return false;
    if (!is_flag(*option)) return i + 1 == word.size();
  }
  return false;
}

// CLI11 takes no value from -q=true, and calls its = an option.
Result<void> check_letters(const CLI::App& app, const std::string& word, const SubcommandSpec* spec) {
  const std::size_t equals = word.find('=');
  if (word.starts_with("--") || !word.starts_with('-') || equals == word.npos || equals < 2) return {};
  const CLI::Option* last = nullptr;
  for (std::size_t i = 1; i < equals; ++i) {
    last = app.get_option_no_throw({'-', word[i]});
    if (!last || !is_flag(*last)) return {};
  }
  const std::string name = "--" + last->get_lnames().front();
  return fail(Error::Code::usage, where(spec) + escaped(word, 100) + ": a letter has no value behind =; write " + name +
                                      "=true or " + name + "=false");
}

// Adds `word` to `out` as CLI11 understands it: it would take the next word for the value of `--name=`, which has an
// empty one, and {} behind the = of a flag for its default.
Result<void> add_word(const CLI::App& app, const std::string& word, const SubcommandSpec* spec,
                      std::vector<std::string>& out) {
  RLOCK_TRY(check_letters(app, word, spec));
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals), value = word.substr(std::min(equals, word.size() - 1) + 1);
  const CLI::Option* option = word.starts_with("--") ? app.get_option_no_throw(name) : nullptr;
  if (option && equals != word.npos && is_flag(*option) && (value.empty() || value == "{}")) {
    return fail(Error::Code::usage, where(spec) + name + ": " + in_quotes(value) + " is neither true nor false");
  }
  if (option && equals + 1 == word.size()) {
    out.insert(out.end(), {name, ""});
  } else {
    out.push_back(word);
  }
  return {};
}

// The words that `app` is to read, up to the subcommand if it stops there.
Result<std::vector<std::string>> for_cli11(const CLI::App& app, const std::vector<std::string>& words,
                                           const SubcommandSpec* spec) {
  std::vector<std::string> out;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (!spec && !word->starts_with('-')) {
      out.insert(out.end(), word, words.end());
      break;
    }
    RLOCK_TRY(add_word(app, *word, spec, out));
    if (wants_next_word(app, *word) && word + 1 != words.end()) out.push_back(*++word);
  }
  return out;
}

// Has CLI11 tell options from other words. False: help was asked for.
Result<bool> let_cli11_parse(CLI::App& app, const std::vector<std::string>& given, const SubcommandSpec* spec) {
  std::vector<std::string> words = RLOCK_TRY(for_cli11(app, given, spec));
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

// Adds the words that CLI11 found to be no option of ours.
Result<void> collect_words(const CLI::App& app, Parsed& parsed) {
  const SubcommandSpec& spec = *parsed.subcommand;
  const bool has_command = parsed.command || (spec.command && parsed.text_of(*spec.command));
  for (const std::string& word : app.remaining()) {
    // After its name this may be an option of a command that lacks its --: the caller says so.
    const bool maybe_command = spec.command && !parsed.names.empty() && !has_command;
    if (word.size() > 1 && word.front() == '-' && !maybe_command) return unknown_option(word, &spec);
    parsed.names.push_back(word);
  }
  return {};
}

Result<Parsed> help_about(const std::vector<std::string>& names) {
  if (names.empty()) return Parsed{.text = overview()};
  const SubcommandSpec* explained = find_subcommand(names.front());
  if (!explained) return unknown_subcommand(names.front());
  return Parsed{.text = subcommand_help(*explained, Detail::full)};
}

// Reads from the subcommand on. An application of its own: a lock may be called as a subcommand is.
Result<Parsed> parse_subcommand(const SubcommandSpec& spec, const std::vector<std::string>& words, Parsed parsed) {
  CLI::App app;  // it knows -h and --help by itself
  std::vector<Described> described = describe_common(app, words);
  for (const auto& part : spec.parts) describe(app, words, part, described);
  CommandFound command;
  note_command(app, described, spec.command, command);
  app.allow_extras();
  if (!RLOCK_TRY(let_cli11_parse(app, words, &spec))) {
    const bool in_full = std::ranges::find(words, "--help") != words.end();
    return Parsed{.text = subcommand_help(spec, in_full ? Detail::full : Detail::brief)};
  }
  if (app.count("--version") > 0 || spec.name == "version") return Parsed{.version = true};

  parsed.subcommand = &spec;
  if (command.times > 1) return given_twice(*spec.command);
  RLOCK_TRY(collect(described, parsed));
  parsed.names_in_front = command.names_in_front;
  RLOCK_TRY(collect_words(app, parsed));
  if (spec.name == "help") return help_about(parsed.names);
  return parsed;
}

}  // namespace

Result<Parsed> parse(const std::vector<std::string>& arguments) {
  // CLI11 must not see the command: it would take its options for ours.
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> rest(arguments.begin(), dashes);
  Parsed parsed;
  if (!rest.empty() && rest.front().starts_with('-')) {  // options before the subcommand
    CLI::App app;
    const std::vector<Described> described = describe_common(app, rest);
    app.prefix_command();  // stop at the subcommand
    if (!RLOCK_TRY(let_cli11_parse(app, rest, nullptr))) return Parsed{.text = overview()};
    if (app.count("--version") > 0) return Parsed{.version = true};
    RLOCK_TRY(collect(described, parsed));
    rest = app.remaining();
  }
  if (dashes != arguments.end()) parsed.command.emplace(dashes + 1, arguments.end());
  if (rest.empty()) return fail(Error::Code::usage, "a subcommand is missing; see rlock --help");
  const std::string word = rest.front();
  if (word.starts_with('-')) return unknown_option(word, nullptr);
  const SubcommandSpec* spec = find_subcommand(word);
  if (!spec) return unknown_subcommand(word);
  rest.erase(rest.begin());
  return parse_subcommand(*spec, rest, std::move(parsed));
}

std::string line_library() { return "CLI11 " CLI11_VERSION; }

}  // namespace rlock::cli
