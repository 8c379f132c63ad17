// SPDX-License-Identifier: MIT
#include "options/parse.h"

#include <CLI/CLI.hpp>

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
    if (option->name() == name || (name.size() == 1 && name[0] == option->letter())) return option;
  }
  return nullptr;
}

// A word that rlock does not know, and where to find help.
std::unexpected<Error> unknown(const SubcommandSpec* about, const std::string& why) {
  return bad_line(about, why + (why.ends_with('?') ? " See" : "; see") + " rlock " +
                             (about ? std::string(about->name) + " " : "") + "--help");
}

// Whether a password follows `word` elsewhere: --pass, -pass, --password=…, --sentinel-password.
bool gives_password(std::string_view word) {
  const std::string_view name = word.substr(0, word.find('=')), last = name.substr(name.rfind('-') + 1);
  constexpr std::string_view kNames[] = {"passwd", "pwd", "pw", "auth", "requirepass"};
  return (last.size() > 2 && std::string_view("password").starts_with(last)) ||
         std::ranges::find(kNames, last) != std::end(kNames);
}

// `word`: with its value, perhaps. `flock`: there is no subcommand, so it is probably meant for `run`, as in flock(1).
std::unexpected<Error> unknown_option(const std::string& word, const SubcommandSpec* spec, bool flock) {
  const SubcommandSpec* run = find_subcommand("run");
  const std::size_t dashes = word.starts_with("--") ? 2 : 1, end = std::min(word.find('='), word.size());
  const std::string name = word.substr(dashes, end - dashes), shown = escaped(word.substr(0, end), 100);
  if (gives_password(word)) {
    return unknown(
        spec,
        shown + " is not an option: rlock reads passwords from --password-file, --password-command or RLOCK_PASSWORD");
  }
  // Those of flock(1) that rlock does not have.
  const auto is = [&](std::string_view letter, std::string_view long_form) {
    return (flock || spec == run) && (word == letter || word == long_form);
  };
  if (is("-u", "--unlock")) {
    return bad_line(nullptr, "to unlock, write rlock release NAME --owner ID, with the ID that rlock acquire printed");
  }
  if (is("-F", "--no-fork")) {
    return bad_line(nullptr, "there is no " + word + ": rlock has to stay beside the command that it runs");
  }
  if (is("-o", "--close")) {
    return bad_line(nullptr, "there is no " + word +
                                 ": no lock is inherited; --leftovers says what happens to processes "
                                 "that the command leaves behind");
  }
  if (flock && find_option(run, dashes == 2 ? name : name.substr(0, 1))) {
    return bad_line(nullptr, shown + " is an option of rlock run; write rlock run [options] NAME -- COMMAND");
  }
  const auto spelled = [](std::string_view one) { return "--" + std::string(one); };
  const std::string meant = suggestion(name, options_of(flock ? run : spec), spelled);
  // What follows a letter may be a password, as after the -a of redis-cli.
  return unknown(spec, "unknown option " + (meant.empty() && dashes == 1 ? escaped(word.substr(0, 2)) : shown) + meant);
}

// If no subcommand is near, `word` is probably the name of a lock, as for flock(1); with a command behind --, also if
// only another subcommand than `run` is.
std::unexpected<Error> unknown_subcommand(const std::string& word, bool dashes, bool as_topic = false) {
  std::vector<std::string_view> names;
  for (const SubcommandSpec& spec : subcommands()) names.push_back(spec.name);
  const auto meant = names_meant(word, names);
  const std::string what = "unknown subcommand " + in_quotes(word);
  if (meant.empty() && as_topic) return unknown(nullptr, what);
  if (meant.empty() || (dashes && std::ranges::find(meant, "run") == meant.end())) {
    return bad_line(
        nullptr, what + "; to take a lock of that name, write rlock run " + escaped(shell_word(word)) + " -- COMMAND");
  }
  return unknown(nullptr, what + "; did you mean " + joined(meant, " or ") + "?");
}

// True if the words may contain the option: its long name, or its letter in a word with one dash.
bool may_be_in(std::span<const std::string> words, const OptionSpec& spec) {
  return std::ranges::any_of(words, [&](std::string_view word) {
    if (!word.starts_with('-')) return false;
    if (!word.starts_with("--")) return spec.letter() != '\0' && word.contains(spec.letter());
    return spec.name() == word.substr(2, word.find_first_of("=\x01") - 2);
  });
}

// The line up to --. CLI11 must not see the command that follows, because that has options of its own.
class Line {
 public:
  explicit Line(std::span<const std::string> words) {
    for (const std::string& word : words) words_.push_back(marked(word));
    if (may_be_in(words_, informing_options()[0])) {
      app_.set_help_flag("-h")->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      app_.set_help_all_flag("--help")->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
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

    std::string name() const { return std::string(spec.name()); }
  };

  // Describes only options that may be on the line, because describing all of them takes a tenth of the time until
  // rlock starts. CLI11 validates nothing: options/option_values.h does, for variables and files as well.
  void describe(CLI::App& app, std::span<const OptionSpec> options) {
    for (const OptionSpec& spec : options) {
      if (!may_be_in(words_, spec)) continue;
      const std::string names(spec.names);
      CLI::Option* option = spec.value.empty() ? app.add_flag(names) : app.add_option(names)->type_size(1);
      described_.push_back({spec, option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)});
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
    return bad_line(subcommand_, "--" + std::string(spec->name()) + " needs " + std::string(spec->value));
  }

  // --help before the subcommand shows the overview.
  Result<void> ask_for_help(Parsed& parsed, Detail detail) const {
    const bool about_all = app_.get_help_ptr()->count() + app_.get_help_all_ptr()->count() > 0;
    const CLI::App& all = app_;
    const CLI::App& asked = about_all ? all : *app_.get_subcommands().front();
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
      auto fine = check_once(one);
      if (result) result = std::move(fine);
      const CLI::results_t& texts = one.option->results();
      // --url can be repeated: the servers of a quorum.
      const std::string text = &one.spec == &url_option() ? joined(texts, " ", unmarked) : unmarked(texts.back());
      parsed.options.emplace(one.spec.name(), Setting{text, {Source::Kind::option, one.name()}});
    }
    return result;
  }

  Result<void> check_once(const Described& one) const {
    if (one.spec.value.empty()) return check_flag(one.name(), one.option->results().back());
    if (&one.spec == &url_option()) return {};
    const bool twice = one.option->count() > 1 || (&one.spec == command() && commands_ > 1);
    return twice ? bad_line(nullptr, "--" + one.name() + " is given twice") : Result<void>();
  }

  const OptionSpec* command() const { return subcommand_ ? subcommand_->command : nullptr; }
  bool lacks_command(const Parsed& parsed) const { return command() && !parsed.command && !parsed.text_of(*command()); }

  // Adds the words that CLI11 did not recognize. Its branches are the mistakes that they may be.
  Result<void> collect_words(Parsed& parsed) {
    const std::vector<std::string> words = app_.remaining();
    if (words_in_front_ > 0) return wrong_beginning(unmarked(words[0]), parsed);
    if (parsed.version) return {};
    if (!subcommand_) {
      return words.empty() ? bad_line(nullptr, "a subcommand is missing; see rlock --help")
                           : wrong_beginning(unmarked(words[0]), parsed);
    }
    parsed.names_before_command = names_before_command_;
    for (const std::string& word : words) {
      // After two words, this may be an option of a command without --, for which the caller has a better message.
      const bool maybe_command = lacks_command(parsed) && parsed.names.size() > 1;
      if (word.size() > 1 && word[0] == '-' && !maybe_command) return wrong_option(unmarked(word), subcommand_);
      parsed.names.push_back(unmarked(word));
    }
    return {};
  }

  // What is in front of the subcommand, or instead of it. Options without one are probably those of flock(1).
  std::unexpected<Error> wrong_beginning(const std::string& word, const Parsed& parsed) {
    return word.starts_with('-') ? wrong_option(word, nullptr) : unknown_subcommand(word, parsed.command.has_value());
  }

  // CLI11 does not support -q=true, and leaves -=true of it. It takes the -v of -version.
  std::unexpected<Error> wrong_option(const std::string& word, const SubcommandSpec* spec) const {
    if (word.starts_with("-=")) return bad_line(spec, "use the long option with =, such as --quiet=true");
    for (const std::string& one : words_) {
      const std::string given = unmarked(one);
      const bool single = given.size() > 2 && given[0] == '-' && given[1] != '-' && given.ends_with(word.substr(1));
      if (single && find_option(spec, given.substr(1))) {
        return unknown(spec, "unknown option " + given + "; did you mean -" + given + "?");
      }
    }
    return unknown_option(word, spec, !subcommand_);
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

  // Without the help option that CLI11's own constructor adds: to add and remove it takes 4 % of a job's instructions.
  struct Bare : CLI::App {
    Bare() : CLI::App("", "", nullptr) {}
  } app_;
  std::vector<std::string> words_;  // marked
  std::vector<Described> described_;
  const SubcommandSpec* subcommand_ = nullptr;
  std::size_t words_in_front_ = 0;        // words before the subcommand that are not options
  std::size_t names_before_command_ = 0;  // names before the option that is a command
  int commands_ = 0;                      // how often that option is given
};

// rlock help [SUBCOMMAND]
Result<void> show_help(Parsed& parsed) {
  const SubcommandSpec* about = parsed.names.empty() ? nullptr : find_subcommand(parsed.names.front());
  if (!about && !parsed.names.empty()) return unknown_subcommand(parsed.names.front(), false, true);
  parsed.text = about ? subcommand_help(*about, Detail::full) : overview();
  return {};
}

}  // namespace

Parsed parse(const std::vector<std::string>& arguments) {
  const auto dashes = std::ranges::find(arguments, "--");
  Parsed parsed;
  if (dashes != arguments.end()) parsed.command.emplace(dashes + 1, arguments.end());
  auto result = Line({arguments.begin(), dashes}).read(parsed);
  if (result && parsed.subcommand && parsed.subcommand->name == "help" && !parsed.version) result = show_help(parsed);
  if (!result) parsed.error = std::move(result).error();
  if (parsed.version || !parsed.text.empty()) parsed.subcommand = nullptr;
  return parsed;
}

std::string line_library() { return "CLI11 " CLI11_VERSION; }

}  // namespace rlock::cli
