// SPDX-License-Identifier: MIT
// The texts of --help and -h, from the option table, wrapped to the terminal's width; suggestions for unknown words.
#pragma once

#include "options/options.h"

namespace rlock::cli {

// rlock --help: the subcommands and the common options.
std::string overview();

enum class Detail { brief, full };

// Brief, for -h: the options that are used often, on one screen. Full, for --help: its own options by group, the names
// of the common ones, and the notes.
std::string subcommand_help(const SubcommandSpec& spec, Detail detail);

// The text of an option without its details.
std::string_view in_short(std::string_view help);

// The names in `known`, of options or subcommands, for what other programs call `word`; if there are none, the nearest.
std::vector<std::string_view> names_meant(std::string_view word, const std::vector<std::string_view>& known);
// "; did you mean X?" or "; did you mean X (its help) or Y (its help)?", of an option that is meant by an unknown
// `name`. It names no risky one. "" if there is none.
std::string suggestion(std::string_view name, const std::vector<const OptionSpec*>& known,
                       std::string (*spelled)(std::string_view name));

}  // namespace rlock::cli
