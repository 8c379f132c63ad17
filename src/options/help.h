// SPDX-License-Identifier: MIT
// The texts of --help and -h, made from the option table, as wide as the terminal.
#pragma once

#include <string>
#include <string_view>

#include "options/option_table.h"

namespace rlock::cli {

// rlock --help: the subcommands, and the options of all of them.
std::string overview();

enum class Detail { brief, full };

// A subcommand. Brief, for -h: the options that are used often, on one screen. Full, for --help: all of them by what
// they are about, and the notes.
std::string subcommand_help(const SubcommandSpec& spec, Detail detail);

// The text of an option in a few words, without its exceptions and its default.
std::string_view in_short(std::string_view help);

// Its default, as the help text has it: what the last parentheses say; "false" of a flag, "" where there is none.
std::string_view default_of(const OptionSpec& option);

}  // namespace rlock::cli
