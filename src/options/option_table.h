// SPDX-License-Identifier: MIT
// All that can stand on a command line: the one place that knows it. Help texts, the reading of options,
// variables and configuration files all come from here; man page, completions and README are tested against it.
#pragma once

#include <array>
#include <ranges>
#include <span>
#include <string>
#include <string_view>

#include "base/duration.h"
#include "base/error.h"
#include "options/options.h"

namespace rlock::cli {

// The subject of an option: help texts list them in this order.
enum class Group { general, waiting, kind, supervision, hooks, common };

// What counts where nobody says anything, as help and `rlock config` show it.
class Default {
 public:
  constexpr Default() = default;
  constexpr Default(milliseconds span) : kind_(Kind::span), number_(span.count()) {}
  constexpr Default(int number) : kind_(Kind::number), number_(number) {}
  constexpr Default(const char* words) : words_(words) {}  // a value, or what happens
  constexpr Default(std::string_view words) : words_(words) {}

  bool is_value() const { return kind_ != Kind::words; }
  // "": there is none.
  std::string text() const {
    return kind_ == Kind::span     ? format_duration(milliseconds(number_))
           : kind_ == Kind::number ? std::to_string(number_)
                                   : std::string(words_);
  }

 private:
  enum class Kind { words, number, span } kind_ = Kind::words;
  std::int64_t number_ = 0;
  std::string_view words_ = "";
};

struct OptionSpec {
  std::string_view names;  // "-w,--wait"; the long one without its dashes is the option's name
  std::string_view value;  // "DUR"; "text|json": one of these words; empty: a flag
  Fill fill = nullptr;     // null: parse() or Settings acts on it, and nobody later
  std::string_view help;
  Default fallback;
  Group group = Group::general;
  // Also a setting: RLOCK_NAME in the environment, `name` in a configuration file (but for what says which settings are
  // read).
  bool setting = false;
  bool often = false;  // used by many: in the short help of -h, too

  std::string_view former{};  // the long name that it had before, without dashes; still understood, and shown nowhere

  constexpr std::string_view name() const { return names.substr(names.find("--") + 2); }
  constexpr char letter() const { return names[1] == '-' ? '\0' : names[1]; }
  constexpr bool is_called(std::string_view word) const {
    return word == name() || (!former.empty() && word == former);
  }
  // Of a command, a hook, an owner id: the text may be a secret, or hold one. The name of a file is none.
  bool may_be_secret() const { return value == "ID" || value == "TEXT"; }
};

struct SubcommandSpec {
  std::string_view name;
  std::string_view summary;                             // one line
  std::string_view synopsis;                            // what comes after the options
  std::array<std::span<const OptionSpec>, 9> parts{};   // its own options, in the order of -h
  Invocation (*blank)(CommonOptions common) = nullptr;  // its options, with no other member filled
  std::string_view notes = "";                          // examples (indented) and exit statuses, below the options
  // The option whose text is a command, as everything after -- is. Null: it takes no command.
  const OptionSpec* command = nullptr;
  std::string_view page = "rlock";  // the man page that explains it

  auto options() const { return parts | std::views::join; }
};

// In the order of the man page.
std::span<const SubcommandSpec> subcommands();
// The one of that name, or null.
const SubcommandSpec* find_subcommand(std::string_view name);

// Those that every subcommand takes, and that may stand before it.
std::span<const OptionSpec> common_options();
// Those that only ask for a text, everywhere: help, and behind it version.
std::span<const OptionSpec> informing_options();

// Options that matter before all of them are read.
const OptionSpec& url_option();
const OptionSpec& config_option();
const OptionSpec& profile_option();
const OptionSpec& log_format_option();

}  // namespace rlock::cli
