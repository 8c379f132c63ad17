// SPDX-License-Identifier: MIT
// An option and a subcommand as rlock knows them: one row each, in options/option_table.cc.
#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "options/options.h"

namespace rlock::cli {

// The subject of an option: help texts list them in this order.
enum class Group { general, waiting, kind, supervision, hooks, common };

// A text that was said about an option.
struct Setting {
  std::string text;    // a flag's is "true", or what stands behind its =
  std::string origin;  // "--lease", "RLOCK_LEASE", "/etc/rlock/rlock.toml:3: lease": in front of complaints
  Source source = Source::fallback;
  int rank = 0;  // of its source: the command line's is 0, and a lower one beats a higher one

  bool former = false;  // by the name that the option had before

  bool on_command_line() const { return source == Source::option; }
};
inline constexpr int kRankOfVariables = 1;

// Reads what was said, and fills the member that is there for it. Errors: usage, config.
using Fill = Result<void> (*)(CommonOptions& options, const Setting& said);

struct OptionSpec {
  std::string_view names;  // "-w,--wait"; the long one without its dashes is the option's name
  std::string_view value;  // "DUR"; "text|json": one of these words; empty: a flag
  Fill fill = nullptr;     // null: parse() or Settings acts on it, and nobody later
  std::string_view help;  // of an option with a value, the last parentheses hold the default: default_of() in options/help.h
  Group group = Group::general;
  // Also a setting: RLOCK_NAME in the environment, `name` in a configuration file (but for what says which settings are
  // read).
  bool setting = false;
  bool often = false;  // used by many: in the short help of -h, too

  std::string_view former{};  // the long name that it had before, without dashes; still understood, and shown nowhere

  constexpr std::string_view name() const { return names.substr(names.find("--") + 2); }
  constexpr bool is_called(std::string_view word) const { return word == name() || (!former.empty() && word == former); }
};

struct SubcommandSpec {
  std::string_view name;
  std::string_view summary;                             // one line
  std::string_view synopsis;                            // what comes after the options
  std::array<std::span<const OptionSpec>, 6> parts{};   // its own options, in the order of -h
  Invocation (*blank)(CommonOptions common) = nullptr;  // its options, with no other member filled
  std::string_view notes = "";                          // examples (indented) and exit statuses, below the options
  // The option whose text is a command, as everything after -- is. Null: it takes no command.
  const OptionSpec* command = nullptr;
  bool shows_settings = false;      // those of all subcommands count for it
  std::string_view page = "rlock";  // the man page that explains it

  auto options() const { return parts | std::views::join; }
};

// The rest of this file makes rows of which the compiler knows that they fill members of the right type, and of a
// struct that the subcommand has.

// A mistake on the command line is one of usage; in a variable or a file it is one of configuration.
inline Error blame(Error error, const Setting& said) {
  if (!said.on_command_line()) error.code = Error::Code::config;
  return std::move(error).in(said.origin);
}

// A Fill for members of Options.
template <class Options>
struct FillOf {
  Fill fill = nullptr;
};

// Fills by a function of its own, Result<void>(Options&, const Setting&).
template <class Options, auto function>
constexpr FillOf<Options> by{[](CommonOptions& options, const Setting& said) -> Result<void> {
  return function(static_cast<Options&>(options), said);
}};

template <class Options, class Member>
Options owner_of(Member Options::*);

// whole.*first.*second …
template <class Whole>
Whole& member_of(Whole& whole) {
  return whole;
}
template <class Whole, class First, class... Rest>
auto& member_of(Whole& whole, First first, Rest... rest) {
  return member_of(whole.*first, rest...);
}

// Fills one member, which may be a member of a member, with what `read`, a Result<T>(const std::string&), makes of the
// text. The member is a T, or a T that need not be there.
template <auto read, auto member, auto... of_member>
constexpr FillOf<decltype(owner_of(member))> into{[](CommonOptions& options, const Setting& said) -> Result<void> {
  using Options = decltype(owner_of(member));
  auto& filled = member_of(static_cast<Options&>(options), member, of_member...);
  using Filled = std::remove_reference_t<decltype(filled)>;
  auto value = read(said.text);
  using Value = typename decltype(value)::value_type;
  static_assert(std::same_as<Filled, Value> || std::same_as<Filled, std::optional<Value>>);
  if (!value) return std::unexpected(blame(std::move(value).error(), said));
  filled = *std::move(value);
  return {};
}};

template <class Options>
struct OptionRow {
  std::string_view names, value;
  FillOf<Options> fill;
  std::string_view help;
  Group group = Group::general;
  bool setting = false, often = false;
  std::string_view former{};
};

// Options that fill members of one struct, so that subcommands can share them.
template <class Options, std::size_t count>
struct Part {
  std::array<OptionSpec, count> rows;
};

template <class Options, std::size_t count>
consteval Part<Options, count> part(const OptionRow<Options> (&rows)[count]) {
  Part<Options, count> made{};
  for (std::size_t i = 0; i < count; ++i) {
    const OptionRow<Options>& row = rows[i];
    made.rows[i] = {row.names, row.value, row.fill.fill, row.help, row.group, row.setting, row.often, row.former};
  }
  return made;
}

// `spec` with what reads its options: the rows of `parts`, whose members are all in Options.
template <class Options, class... In, std::size_t... count>
  requires(std::derived_from<Options, In> && ...)
consteval SubcommandSpec subcommand(SubcommandSpec spec, const Part<In, count>&... parts) {
  spec.parts = {parts.rows...};
  spec.blank = [](CommonOptions common) -> Invocation {
    Options options;
    static_cast<CommonOptions&>(options) = std::move(common);
    return options;
  };
  return spec;
}

}  // namespace rlock::cli
