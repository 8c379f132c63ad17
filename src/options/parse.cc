// SPDX-License-Identifier: MIT
#include "options/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.h"
#include "options/help.h"
#include "options/option_values.h"

namespace rlock::cli {
namespace {

// CLI11 2.1 uses the next word if the value in `--name=` is empty, replaces `{}` after a flag's = by its default, and
// ends a subcommand at ++. A mark at the end of such words prevents that; it is removed from the results.
constexpr std::string_view kMark = "\x01";

std::string marked(std::string word) {
  const bool misread = word.ends_with('=') || word.ends_with("={}") || word == "++" || word.ends_with(kMark);
  return misread ? word.append(kMark) : word;
}

std::string unmarked(std::string word) {
  if (word.ends_with(kMark)) word.pop_back();
  return word;
}

std::unexpected<Error> bad_line(const SubcommandSpec* spec, const std::string& why) {
  return fail(Error::Code::usage, (spec ? std::string(spec->name) + ": " : "") + why);
}

// By name or letter, without dashes.
const OptionSpec* find_option(const SubcommandSpec* spec, std::string_view name) {
  for (const OptionSpec* option : options_of(spec)) {
    if (option->is_called(name) || (name.size() == 1 && name[0] == option->letter())) return option;
  }
  return nullptr;
}

// The end of a message: a suggestion, if any, and where to find help.
std::string hints(const std::string& suggested, const std::string& help) {
  return suggested + (suggested.empty() ? "; see " : " See ") + help;
}

std::unexpected<Error> unknown_option(const std::string& word, const SubcommandSpec* spec) {
  std::vector<std::string_view> known;
  for (const OptionSpec* option : options_of(spec)) known.push_back(option->names.substr(option->names.find("--")));
  const std::string name = word.substr(0, word.find('=')), about = spec ? std::string(spec->name) + " " : "";
  return bad_line(spec,
                  "unknown option " + escaped(name, 100) + hints(suggestion(name, known), "rlock " + about + "--help"));
}

// Names that other programs have for these subcommands.
constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
    {"list", "status"},  {"ls", "status"},      {"ps", "status"}, {"show", "status"},
    {"lock", "acquire"}, {"unlock", "release"}, {"exec", "run"},  {"break", "force-unlock"},
};

std::unexpected<Error> unknown_subcommand(const std::string& word) {
  std::vector<std::string_view> names;
  for (const SubcommandSpec& spec : subcommands()) names.push_back(spec.name);
  const auto* other = std::ranges::find(kElsewhere, word, &std::pair<std::string_view, std::string_view>::first);
  const std::string suggested = other == std::end(kElsewhere)
                                    ? suggestion(word, names)
                                    : "; did you mean rlock " + std::string(other->second) + "?";
  return bad_line(nullptr, "unknown subcommand " + in_quotes(word) + hints(suggested, "rlock --help"));
}

// True if the words may contain the option: its long name, or its letter in a word with one dash.
bool may_be_in(std::span<const std::string> words, const OptionSpec& spec) {
  return std::ranges::any_of(words, [&](std::string_view word) {
    if (!word.starts_with('-')) return false;
    if (!word.starts_with("--")) return spec.letter() != '\0' && word.contains(spec.letter());
    return spec.is_called(word.substr(2, word.find_first_of("=\x01") - 2));
  });
}

// The line up to --. CLI11 must not see the command that follows, because that has options of its own.
class Line {
 public:
  explicit Line(std::span<const std::string> words) {
    for (const std::string& word : words) words_.push_back(marked(word));
    app_.set_help_flag("-h")->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app_.set_help_all_flag("--help")->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    // Common options can also follow the subcommand, and a lock can have the name of a subcommand.
    app_.allow_extras()->fallthrough()->require_subcommand(0, 1);
    describe(app_, informing_options().subspan(1));
    describe(app_, common_options());
    for (const SubcommandSpec& spec : subcommands()) {
      if (std::ranges::find(words_, spec.name) == words_.end()) continue;
      CLI::App* app = app_.add_subcommand(std::string(spec.name));
      app->preparse_callback([this, app, &spec](std::size_t) { begin(*app, spec); });
    }
  }

  Result<void> read(Parsed& parsed) {
    Result<void> result;
    try {
      app_.parse(std::vector(words_.rbegin(), words_.rend()));  // in the order that CLI11 expects
    } catch (const CLI::CallForHelp&) {
      return ask_for_help(parsed, Detail::brief);
    } catch (const CLI::CallForAllHelp&) {
      return ask_for_help(parsed, Detail::full);
    } catch (const CLI::ArgumentMismatch& error) {
      result = value_is_missing(error);
    } catch (const CLI::ParseError& error) {
      result = bad_line(subcommand_, escaped(error.what(), 300));
    }
    parsed.subcommand = subcommand_;
    auto collected = collect(parsed);
    parsed.version = parsed.text_of(informing_options()[1]) || (subcommand_ && subcommand_->name == "version");
    if (result) result = std::move(collected);
    if (result) result = collect_words(parsed);
    parsed.exports = exports(parsed, !result);
    return result;
  }

 private:
  struct Described {
    const OptionSpec& spec;
    CLI::Option* option;
    bool former;  // under its former name

    std::string name() const { return std::string(former ? spec.former : spec.name()); }
  };

  // Describes only options that may be on the line, because describing all of them takes a tenth of the time until
  // rlock starts. CLI11 validates nothing: options/option_values.h does, for variables and files as well.
  void describe(CLI::App& app, std::span<const OptionSpec> options) {
    for (const OptionSpec& spec : options) {
      if (!may_be_in(words_, spec)) continue;
      const auto add = [&](const std::string& names, bool former) {
        CLI::Option* option = spec.value.empty() ? app.add_flag(names) : app.add_option(names)->type_size(1);
        described_.push_back({spec, option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll), former});
      };
      add(std::string(spec.names), false);
      if (!spec.former.empty()) add("--" + std::string(spec.former), true);
    }
  }

  // CLI11 calls this when it finds the subcommand.
  void begin(CLI::App& app, const SubcommandSpec& spec) {
    subcommand_ = &spec;
    words_in_front_ = app_.remaining_size();
    for (const auto& part : spec.parts) describe(app, part);
    const auto command = std::ranges::find(described_, spec.command, [](const Described& one) { return &one.spec; });
    if (command == described_.end()) return;
    // Count them here, because with this setting CLI11 forgets the text of the previous one.
    command->option->trigger_on_parse()->each([this](const std::string&) {
      ++commands_;
      names_before_command_ = app_.remaining_size();
    });
  }

  // It must be the last option, because others would take the next word as their value.
  std::unexpected<Error> value_is_missing(const CLI::ArgumentMismatch& error) const {
    const std::string& last = words_.back();
    const OptionSpec* spec = find_option(subcommand_, last.substr(last.starts_with("--") ? 2 : last.size() - 1));
    if (!spec) return bad_line(subcommand_, escaped(error.what(), 300));
    return bad_line(subcommand_, (last.starts_with("--") ? last : "--" + std::string(spec->name())) + " needs " +
                                     std::string(spec->value));
  }

  // --help before the subcommand shows the overview.
  Result<void> ask_for_help(Parsed& parsed, Detail detail) const {
    const bool about_all = app_.get_help_ptr()->count() + app_.get_help_all_ptr()->count() > 0;
    const CLI::App& asked = about_all ? app_ : *app_.get_subcommands().front();
    for (const CLI::Option* option : {asked.get_help_ptr(), asked.get_help_all_ptr()}) {
      for (const std::string& text : option->results()) RLOCK_TRY(check_flag("help", text));
    }
    parsed.text = about_all ? overview() : subcommand_help(*subcommand_, detail);
    return {};
  }

  Result<void> check_flag(std::string_view name, const std::string& text) const {
    const auto on = flag(unmarked(text));
    return on ? Result<void>() : bad_line(subcommand_, "--" + std::string(name) + ": " + on.error().message);
  }

  // Copies the options from CLI11 to `parsed`. Returns the first error.
  Result<void> collect(Parsed& parsed) const {
    Result<void> result;
    for (const Described& one : described_) {
      if (one.option->count() == 0) continue;
      auto fine = check_once(one, parsed);
      if (result) result = std::move(fine);
      // --url can be repeated: the servers of a quorum.
      const CLI::results_t& texts = one.option->results();
      const bool is_url = &one.spec == &url_option();
      parsed.options.insert_or_assign(
          one.spec.name(), Setting{.text = is_url ? CLI::detail::join(texts, unmarked, " ") : unmarked(texts.back()),
                                   .source = {Source::Kind::option, one.name()},
                                   .former = one.former});
    }
    return result;
  }

  Result<void> check_once(const Described& one, const Parsed& parsed) const {
    if (one.spec.value.empty()) return check_flag(one.name(), one.option->results().back());
    if (&one.spec == &url_option()) return {};
    const bool twice = one.option->count() > 1 || parsed.text_of(one.spec) || (&one.spec == command() && commands_ > 1);
    return twice ? bad_line(nullptr, "--" + std::string(one.spec.name()) + " is given twice") : Result<void>();
  }

  const OptionSpec* command() const { return subcommand_ ? subcommand_->command : nullptr; }

  // Adds the words that CLI11 did not recognize. Its branches are the mistakes that they may be.
  Result<void> collect_words(Parsed& parsed) const {
    const std::vector<std::string> words = app_.remaining();
    if (words_in_front_ > 0) return wrong_beginning(unmarked(words[0]));
    if (parsed.version) return {};
    if (!subcommand_ && words.empty()) return bad_line(nullptr, "a subcommand is missing; see rlock --help");
    if (!subcommand_) return wrong_beginning(unmarked(words[0]));
    parsed.names_before_command = names_before_command_;
    const bool lacks_command = command() && !parsed.command && !parsed.text_of(*command());
    for (const std::string& word : words) {
      // After a name, this may be an option of a command without --, for which the caller has a better message.
      const bool maybe_command = lacks_command && !parsed.names.empty();
      if (word.size() > 1 && word[0] == '-' && !maybe_command) return wrong_option(unmarked(word), subcommand_);
      parsed.names.push_back(unmarked(word));
    }
    return {};
  }

  std::unexpected<Error> wrong_beginning(const std::string& word) const {
    return word.starts_with('-') ? wrong_option(word, nullptr) : unknown_subcommand(word);
  }

  // CLI11 does not support -q=true, and leaves -=true of it.
  std::unexpected<Error> wrong_option(const std::string& word, const SubcommandSpec* spec) const {
    for (const std::string& one : words_) {
      const std::string given = unmarked(one);
      const std::size_t equals = given.find('=');
      if (!word.starts_with("-=") || given.starts_with("--") || equals == given.npos || equals < 2) continue;
      const OptionSpec* last = find_option(spec, given.substr(equals - 1, 1));
      if (!last || given.substr(equals) != word.substr(1)) continue;
      const std::string name = "--" + std::string(last->name());
      return bad_line(spec,
                      escaped(given, 100) + ": use the long option with =: " + name + "=true or " + name + "=false");
    }
    return unknown_option(word, spec);
  }

  // If the line is wrong, any word may be the subcommand, and any --export counts: it is safe to print a text that
  // fails, because nothing else is done.
  bool exports(const Parsed& parsed, bool wrong) const {
    const SubcommandSpec& acquire = *find_subcommand("acquire");
    const std::string* text = parsed.text_of(*find_option(&acquire, "export"));
    if (subcommand_ == &acquire && text && flag(*text).value_or(true)) return !parsed.version || wrong;
    return wrong && std::ranges::find(words_, acquire.name) != words_.end() &&
           std::ranges::any_of(words_, [](const std::string& word) { return word.starts_with("--export"); });
  }

  CLI::App app_;
  std::vector<std::string> words_;  // marked
  std::vector<Described> described_;
  const SubcommandSpec* subcommand_ = nullptr;
  std::size_t words_in_front_ = 0;        // words before the subcommand that are not options
  std::size_t names_before_command_ = 0;  // names before the option that is a command
  int commands_ = 0;                      // how often that option is given
};

// The text of rlock help [SUBCOMMAND].
Result<std::string> help_text(const std::vector<std::string>& names) {
  if (names.empty()) return overview();
  const SubcommandSpec* spec = find_subcommand(names.front());
  return spec ? Result<std::string>(subcommand_help(*spec, Detail::full)) : unknown_subcommand(names.front());
}

}  // namespace

Parsed parse(const std::vector<std::string>& arguments) {
  const auto dashes = std::ranges::find(arguments, "--");
  Parsed parsed;
  if (dashes != arguments.end()) parsed.command.emplace(dashes + 1, arguments.end());
  auto result = Line({arguments.begin(), dashes}).read(parsed);
  if (result && parsed.subcommand && parsed.subcommand->name == "help" && !parsed.version) {
    auto text = help_text(parsed.names);
    parsed.text = text.value_or("");
    if (!text) result = std::unexpected(std::move(text).error());
  }
  if (!result) parsed.error = std::move(result).error();
  if (parsed.version || !parsed.text.empty()) parsed.subcommand = nullptr;
  return parsed;
}

std::string line_library() { return "CLI11 " CLI11_VERSION; }

}  // namespace rlock::cli
