// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "base/text.h"
#include "options/option_values.h"
#include "options/parse.h"
#include "redis/endpoint.h"
#include "run/guard_state.h"
#include "verbs/rights.h"

namespace rlock::cli {
namespace {

std::unexpected<Error> wrong_words(std::string message) { return fail(Error::Code::usage, std::move(message)); }

// All positional arguments, before and after --. Error: more than `most`, with the explanation `why`.
Result<std::vector<std::string>> words_of(const Parsed& parsed, std::size_t most = SIZE_MAX, const char* why = "") {
  std::vector<std::string> all = parsed.names;
  if (parsed.command && !parsed.subcommand->command) {
    all.insert(all.end(), parsed.command->begin(), parsed.command->end());
  }
  if (all.size() > most) return wrong_words("unexpected argument " + in_quotes(all[most]) + ": " + why);
  return all;
}

Result<std::vector<lock::LockName>> names_in(const Parsed& parsed, std::size_t most = SIZE_MAX, const char* why = "") {
  std::vector<lock::LockName> all;
  for (const std::string& text : RLOCK_TRY(words_of(parsed, most, why))) {
    all.push_back(RLOCK_TRY(lock::LockName::parse(text)));
  }
  return all;
}

std::unexpected<Error> name_is_missing(const Parsed& parsed) {
  return wrong_words("the NAME of a lock is missing: rlock " + std::string(parsed.subcommand->name) + " [options] " +
                     std::string(parsed.subcommand->synopsis));
}

// Sorted, so that jobs that take several locks cannot deadlock.
Result<std::vector<lock::LockName>> sorted_names(const Parsed& parsed) {
  auto all = RLOCK_TRY(names_in(parsed));
  if (all.empty()) return name_is_missing(parsed);
  if (all.size() > run::kMostHolds) {
    return wrong_words(std::to_string(all.size()) + " names; at most " + std::to_string(run::kMostHolds) +
                       " are possible");
  }
  std::ranges::sort(all);
  const auto twice = std::ranges::adjacent_find(all);
  if (twice != all.end()) return wrong_words(in_quotes(twice->text()) + " is given twice");
  return all;
}

std::string without_password(std::string word) {
  const std::string_view password = redis::secret_in(word);
  if (password.empty()) return word;
  return word.replace(static_cast<std::size_t>(password.data() - word.data()), password.size(), "***");
}

// The command line with the missing -- inserted before its second word.
std::string corrected(const std::vector<std::string>& arguments, const Parsed& parsed) {
  std::string line = "rlock";
  // Search from the end, because the command's first word may also be the value of an option.
  std::size_t rest = parsed.names.size() - 1, command = arguments.size();
  while (command > 0 && rest > 0) {
    if (arguments[--command] == parsed.names[rest]) --rest;
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    line += (i == command ? " -- " : " ") + shell_word(without_password(arguments[i]));
  }
  // The line is meant to be pasted, so leave backslashes alone unless something else needs escaping.
  return is_what_it_looks_like(line) ? line : escaped(line);
}

Result<std::vector<std::string>> shell_command(const std::string& text) {
  if (text.empty()) return wrong_words("--command: the text is empty");
  const char* shell = std::getenv("SHELL");
  return std::vector<std::string>{shell && *shell ? shell : "/bin/sh", "-c", text};
}

Result<std::vector<std::string>> command_behind_dashes(const Parsed& parsed) {
  if (!parsed.command || parsed.command->empty()) {
    return wrong_words("a command is missing: rlock run [options] " + escaped(shell_word(parsed.names[0])) +
                       " -- COMMAND [ARG...]");
  }
  if (parsed.command->front().empty()) return wrong_words("the command is an empty word");
  return *parsed.command;
}

Result<std::vector<std::string>> command_in(const Parsed& parsed, const std::vector<std::string>& arguments) {
  const std::string* text = parsed.text_of(*parsed.subcommand->command);
  if (parsed.names.empty()) return name_is_missing(parsed);
  // Users of `sh -c` would expect these words to be the command's arguments, not names to lock.
  if (text && parsed.names.size() > parsed.names_before_command) {
    return wrong_words(in_quotes(parsed.names[parsed.names_before_command]) +
                       " follows -c TEXT: put names before -c, and arguments of the command into TEXT");
  }
  if (parsed.names.size() > 1 && !parsed.command && !text) {
    return wrong_words("-- is missing before the command; write\n  " + corrected(arguments, parsed));
  }
  if (text && parsed.command) return contradiction("--command", "a command after --");
  return text ? shell_command(*text) : command_behind_dashes(parsed);
}

Result<void> read_words_of(RunOptions& options, const Parsed& parsed, const std::vector<std::string>& arguments) {
  options.command = RLOCK_TRY(command_in(parsed, arguments));
  options.shown_command = options.command.front();
  options.names = RLOCK_TRY(sorted_names(parsed));
  return {};
}

Result<void> read_words_of(NamingOptions& options, const Parsed& parsed) {
  options.names = RLOCK_TRY(sorted_names(parsed));
  return {};
}

// With --forget, NAME KEY.
Result<void> read_words_of(ReleaseOptions& options, const Parsed& parsed) {
  const auto rows = parsed.subcommand->options();
  const auto forget = std::ranges::find_if(rows, [](const OptionSpec& row) { return row.name() == "forget"; });
  const std::string* text = parsed.text_of(*forget);
  if (!text || *text == "false") return read_words_of(static_cast<NamingOptions&>(options), parsed);
  const auto words = RLOCK_TRY(words_of(parsed, 2, "release --forget takes one NAME and one KEY"));
  if (words.size() != 2)
    return wrong_words("the NAME of a lock, or the KEY, is missing: rlock release --forget NAME KEY");
  options.names = {RLOCK_TRY(lock::LockName::parse(words[0]))};
  options.forget = RLOCK_TRY(forgotten_key(words[1]));
  return {};
}

template <class Options>
  requires std::same_as<Options, StatusOptions> || std::same_as<Options, HistoryOptions>
Result<void> read_words_of(Options& options, const Parsed& parsed) {
  options.names = RLOCK_TRY(names_in(parsed));
  return {};
}

Result<void> read_words_of(ForceUnlockOptions& options, const Parsed& parsed) {
  options.names = RLOCK_TRY(names_in(parsed, 1, "force-unlock takes one NAME"));
  return options.names.empty() ? name_is_missing(parsed) : Result<void>();
}

Result<void> read_words_of(DoctorOptions& options, const Parsed& parsed) {
  const auto words = RLOCK_TRY(words_of(parsed, 1, "doctor takes one PREFIX"));
  if (!words.empty()) options.prefix = RLOCK_TRY(lock::parse_prefix(words[0]));
  return {};
}

Result<void> read_words_of(ConfigOptions&, const Parsed& parsed) {
  RLOCK_TRY(words_of(parsed, 0, "config takes only options"));
  return {};
}

Result<void> read_words_of(LocalOptions& options, const Parsed& parsed) {
  const auto words = RLOCK_TRY(words_of(parsed));
  const auto action = choice_of(words.size() == 1 ? words[0] : "", "status|stop|serve");
  if (!action) return wrong_words("local needs one of status, stop and serve");
  options.action = static_cast<LocalOptions::Action>(action->place);
  return {};
}

}  // namespace

Result<void> read_words(Invocation& invocation, const Parsed& parsed, const std::vector<std::string>& arguments) {
  return std::visit(
      [&](auto& options) -> Result<void> {
        if constexpr (requires { read_words_of(options, parsed, arguments); }) {
          return read_words_of(options, parsed, arguments);
        } else if constexpr (requires { read_words_of(options, parsed); }) {
          return read_words_of(options, parsed);
        }
        return {};
      },
      invocation);
}

}  // namespace rlock::cli
