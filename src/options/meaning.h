// SPDX-License-Identifier: MIT
// The meaning of a line as a whole: of its words that are no options, and of its options together.
// Errors (usage): what is missing, too much, twice, or a contradiction.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "options/options.h"
#include "options/parse.h"

namespace rlock::cli {

// Fills what the words say: names of locks, how they begin, a command, what `rlock local` is to do. `arguments` is the
// whole line, for a message that corrects it.
Result<void> read_words(Invocation& invocation, const Parsed& parsed, const std::vector<std::string>& arguments);

// Fills what follows from the options and words that were read. Warns of what may not be meant.
Result<void> complete(Invocation& invocation);

}  // namespace rlock::cli
