// SPDX-License-Identifier: MIT
// The texts of --help and -h, generated from the option table and wrapped to the terminal's width; and suggestions for
// unknown words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "options/option_table.h"

namespace rlock::cli {

// rlock --help: the subcommands and the common options.
std::string overview();

enum class Detail { brief, full };

// Brief, for -h: the options that are used often, on one screen. Full, for --help: all options by group, and the notes.
std::string subcommand_help(const SubcommandSpec& spec, Detail detail);

// The text of an option without its details.
std::string_view in_short(std::string_view help);

// "; did you mean X?" with the nearest candidate by edit distance; empty if none is near.
std::string suggestion(std::string_view word, const std::vector<std::string_view>& candidates);
// The same without the phrase.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace rlock::cli
