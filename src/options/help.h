// SPDX-License-Identifier: MIT
// Texts that help: those of --help and -h, made from the option table, as wide as the terminal; and what a word that is
// not known may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "options/option_table.h"

namespace rlock::cli {

// rlock --help: the subcommands, and the options of all of them.
std::string overview();

enum class Detail { brief, full };

// A subcommand. Brief, for -h: the options that are used often, on one screen. Full, for --help: all of them by what
// they are about, and the notes.
std::string subcommand_help(const SubcommandSpec& spec, Detail detail);

// The text of an option in a few words, without its exceptions.
std::string_view in_short(std::string_view help);

// "; did you mean X?" with the candidate that is nearest to `word` by edit distance, if one is near.
std::string suggestion(std::string_view word, const std::vector<std::string_view>& candidates);
// The candidate itself; "": none is near.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace rlock::cli
