// SPDX-License-Identifier: MIT
// Interprets the command line as a whole: its other words, and its options in combination.
// Errors (usage): words that are missing, unexpected or repeated, and options that cannot be used together.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "options/options.h"
#include "options/parse.h"

namespace rlock::cli {

// Sets the members that come from positional words: names of locks, a prefix, a command, the action of `rlock local`.
// `arguments`: the whole command line, for a message that corrects it.
Result<void> read_words(Invocation& invocation, const Parsed& parsed, const std::vector<std::string>& arguments);

// Checks the options against each other and sets the members that follow from them. Warns of likely mistakes.
Result<void> complete(Invocation& invocation);

}  // namespace rlock::cli
