// SPDX-License-Identifier: MIT
#include "options/parse.h"

#include <algorithm>

#include "base/text.h"
#include "options/help.h"
#include "options/option_values.h"

namespace rlock::cli {
namespace {

std::unexpected<Error> bad_line(const SubcommandSpec* spec, const std::string& why) {
  return fail(Error::Code::usage, (spec ? std::string(spec->name) + ": " : "") + why);
}

// All options that are allowed with the subcommand, or, if null, without one.
std::vector<const OptionSpec*> options_of(const SubcommandSpec* spec) {
  std::vector<const OptionSpec*> all;
  const auto add = [&](std::span<const OptionSpec> options) {
    for (const OptionSpec& option : options) all.push_back(&option);
  };
  add(informing_options());
  add(common_options());
  if (spec) std::ranges::for_each(spec->parts, add);
  return all;
}

// Null if there is none.
const OptionSpec* find_option(const SubcommandSpec* spec, std::string_view name) {
  const auto all = options_of(spec);
  const auto found = std::ranges::find_if(all, [&](const OptionSpec* option) { return option->is_called(name); });
  return found == all.end() ? nullptr : *found;
}

const OptionSpec* find_letter(const SubcommandSpec* spec, char letter) {
  const auto all = options_of(spec);
  const auto found = std::ranges::find(all, letter, &OptionSpec::letter);
  return found == all.end() ? nullptr : *found;
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

// The line up to --; the command after that has options of its own.
class Line {
 public:
  explicit Line(std::span<const std::string> words) : words_(words) {}

  Result<void> read(Parsed& parsed) {
    Result<void> result;
    while (next_ < words_.size()) {
      auto fine = read_word(words_[next_++], parsed);
      if (result) result = std::move(fine);
    }
    if (parsed.text_of(informing_options()[0])) {
      parsed.text = help_is_general_ ? overview() : subcommand_help(*subcommand_, help_);
      return {};
    }
    parsed.subcommand = subcommand_;
    parsed.version = parsed.text_of(informing_options()[1]) || (subcommand_ && subcommand_->name == "version");
    parsed.exports = exports(parsed);
    if (!result || parsed.version) return result;
    return collect_names(parsed);
  }

 private:
  // A word, or the rest of one, that is neither an option nor the subcommand.
  struct Other {
    std::string text, whole;
  };

  Result<void> read_word(const std::string& word, Parsed& parsed) {
    if (word.starts_with("--")) return read_long_option(word, parsed);
    if (word.size() > 1 && word[0] == '-') return read_letters(word, parsed);
    const SubcommandSpec* spec = subcommand_ ? nullptr : find_subcommand(word);
    if (!spec) return leave(word, word);
    subcommand_ = spec;
    words_in_front_ = others_.size();
    return {};
  }

  Result<void> leave(const std::string& text, const std::string& whole) {
    others_.push_back({text, whole});
    return {};
  }

  Result<void> read_long_option(const std::string& word, Parsed& parsed) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(2, equals - 2);
    const OptionSpec* option = find_option(subcommand_, name);
    if (!option) return leave(word, word);
    if (option == &informing_options()[0]) help_ = Detail::full;
    return take(*option, name, equals < word.size() ? std::optional(word.substr(equals + 1)) : std::nullopt, parsed);
  }

  // -nw5s is -n -w 5s.
  Result<void> read_letters(const std::string& word, Parsed& parsed) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const OptionSpec* option = find_letter(subcommand_, word[i]);
      if (!option) return leave("-" + word.substr(i), word);
      const std::string name(option->name()), rest = word.substr(i + 1);
      if (!option->value.empty()) return take(*option, name, rest.empty() ? std::nullopt : std::optional(rest), parsed);
      if (rest.starts_with('=')) return leave("-" + rest, word);
      RLOCK_TRY(take(*option, name, {}, parsed));
    }
    return {};
  }

  // `text`: the text in the same word, if any.
  Result<void> take(const OptionSpec& option, const std::string& name, std::optional<std::string> text,
                    Parsed& parsed) {
    if (option.value.empty()) {
      if (!text) text = "true";
      if (const auto on = flag(*text); !on) return bad_line(subcommand_, "--" + name + ": " + on.error().message);
    } else if (!text) {
      if (next_ == words_.size()) {
        return bad_line(subcommand_, "--" + std::string(option.name()) + " needs " + std::string(option.value));
      }
      text = words_[next_++];
    }
    help_is_general_ = help_is_general_ || (&option == &informing_options()[0] && !subcommand_);
    Setting said{.text = *text, .source = {Source::Kind::option, name}, .former = name != option.name()};
    if (const std::string* before = option.value.empty() ? nullptr : parsed.text_of(option)) {
      // --url can be repeated: the servers of a quorum.
      if (&option != &url_option()) return bad_line(nullptr, "--" + std::string(option.name()) + " is given twice");
      said.text = *before + " " + *text;
    }
    if (&option == command()) names_before_command_ = others_.size();
    parsed.options.insert_or_assign(option.name(), std::move(said));
    return {};
  }

  const OptionSpec* command() const { return subcommand_ ? subcommand_->command : nullptr; }

  Result<void> collect_names(Parsed& parsed) const {
    if (!subcommand_ && others_.empty()) return bad_line(nullptr, "a subcommand is missing; see rlock --help");
    if (!subcommand_ || words_in_front_ > 0) {
      const Other& first = others_[0];
      return first.text.starts_with('-') ? wrong_option(first, nullptr) : unknown_subcommand(first.text);
    }
    parsed.names_before_command = names_before_command_;
    const bool lacks_command = command() && !parsed.command && !parsed.text_of(*command());
    for (const Other& other : others_) {
      // After a name, this may be an option of a command without --, for which the caller has a better message.
      const bool is_option = other.text.size() > 1 && other.text[0] == '-';
      if (is_option && (!lacks_command || parsed.names.empty())) return wrong_option(other, subcommand_);
      parsed.names.push_back(other.whole);
    }
    return {};
  }

  static std::unexpected<Error> wrong_option(const Other& other, const SubcommandSpec* spec) {
    if (!other.text.starts_with("-=")) return unknown_option(other.text, spec);
    const OptionSpec* option = find_letter(spec, other.whole[other.whole.find('=') - 1]);
    const std::string name = "--" + std::string(option->name());
    return bad_line(
        spec, escaped(other.whole, 100) + ": use the long option with =: " + name + "=true or " + name + "=false");
  }

  // After an unknown option, any word may be the subcommand. In doubt the answer is true: the line is refused anyway,
  // so it is safe to print a text that fails.
  bool exports(const Parsed& parsed) const {
    const SubcommandSpec& acquire = *find_subcommand("acquire");
    const std::string* text = parsed.text_of(*find_option(&acquire, "export"));
    if (subcommand_ == &acquire) return text && flag(*text).value_or(true) && !parsed.version;
    return words_in_front_ > 0 && std::ranges::find(others_, acquire.name, &Other::text) != others_.end() &&
           std::ranges::any_of(others_, [](const Other& other) { return other.text.starts_with("--export"); });
  }

  std::span<const std::string> words_;
  std::size_t next_ = 0;
  std::vector<Other> others_;
  const SubcommandSpec* subcommand_ = nullptr;
  std::size_t words_in_front_ = 0;        // of others_, before the subcommand
  std::size_t names_before_command_ = 0;  // of others_, before the option that is a command
  Detail help_ = Detail::brief;
  bool help_is_general_ = false;  // --help came before the subcommand
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

}  // namespace rlock::cli
