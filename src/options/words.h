// SPDX-License-Identifier: MIT
// The words of a command line that are no options: names of locks, how they begin, a command, what `rlock local` is to
// do.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "options/options.h"
#include "options/parse.h"

namespace rlock::cli {

// Each fills what the words say. `arguments` is the whole line, for a message that corrects it.
// Errors (usage): what is missing, too much, twice, or no name of a lock.
Result<void> read_words(RunOptions& options, const Parsed& parsed, const std::vector<std::string>& arguments);
Result<void> read_words(NamingOptions& options, const Parsed& parsed, const std::vector<std::string>& arguments);
Result<void> read_words(StatusOptions& options, const Parsed& parsed, const std::vector<std::string>& arguments);
Result<void> read_words(HistoryOptions& options, const Parsed& parsed, const std::vector<std::string>& arguments);
Result<void> read_words(ForceUnlockOptions& options, const Parsed& parsed, const std::vector<std::string>& arguments);
Result<void> read_words(DoctorOptions& options, const Parsed& parsed, const std::vector<std::string>& arguments);
Result<void> read_words(ConfigOptions& options, const Parsed& parsed, const std::vector<std::string>& arguments);
Result<void> read_words(LocalOptions& options, const Parsed& parsed, const std::vector<std::string>& arguments);

}  // namespace rlock::cli
