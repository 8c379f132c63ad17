// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "base/text.h"
#include "lock/rights.h"
#include "options/meaning.h"
#include "redis/endpoint.h"
#include "run/guard_state.h"

namespace rlock::cli {
namespace {

std::unexpected<Error> wrong_words(std::string message) { return fail(Error::Code::usage, std::move(message)); }

// All positional arguments, before and after a --; `most` of them, for the reason `why`.
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

// Sorted, so that those who take several locks together do not wait for one another in a circle.
Result<std::vector<lock::LockName>> sorted_names(const Parsed& parsed) {
  auto all = RLOCK_TRY(names_in(parsed));
  if (all.empty()) return name_is_missing(parsed);
  if (all.size() > run::kMostHolds) {
    return wrong_words(std::to_string(all.size()) + " names; at most " + std::to_string(run::kMostHolds) +
                       " at a time");
  }
  std::ranges::sort(all);
  const auto twice = std::ranges::adjacent_find(all);
  if (twice != all.end()) return wrong_words(in_quotes(twice->text()) + " is named twice");
  return all;
}

std::string without_password(std::string word) {
  const std::string_view password = redis::secret_in(word);
  if (password.empty()) return word;
  return word.replace(static_cast<std::size_t>(password.data() - word.data()), password.size(), "***");
}

// The command line with the -- that it lacks in front of its second word.
std::string corrected(const std::vector<std::string>& arguments, const Parsed& parsed) {
  std::string line = "rlock";
  // From the end: the command's first word may stand among the options as well, as an option's value.
  std::size_t rest = parsed.names.size() - 1, command = arguments.size();
  while (command > 0 && rest > 0) {
    if (arguments[--command] == parsed.names[rest]) --rest;
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    line += (i == command ? " -- " : " ") + shell_word(without_password(arguments[i]));
  }
  // To be pasted: a backslash stays what it is, unless there is something that a terminal would act on.
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
  // sh would make $0, $1 and so on of them; to be taken for names, they would lock what nobody meant.
  if (text && parsed.names.size() > parsed.names_in_front) {
    return wrong_words(in_quotes(parsed.names[parsed.names_in_front]) +
                       " stands behind -c TEXT: names stand in front of -c, arguments of the command in TEXT");
  }
  if (parsed.names.size() > 1 && !parsed.command && !text) {
    return wrong_words("a -- is missing in front of the command; write\n  " + corrected(arguments, parsed));
  }
  if (text && parsed.command) return wrong_words("--command and a command after -- contradict each other; give one");
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

Result<void> read_words_of(StatusOptions& options, const Parsed& parsed) {
  options.names = RLOCK_TRY(names_in(parsed));
  return {};
}

Result<void> read_words_of(HistoryOptions& options, const Parsed& parsed) {
  options.names = RLOCK_TRY(names_in(parsed));
  return {};
}

Result<void> read_words_of(ForceUnlockOptions& options, const Parsed& parsed) {
  options.names = RLOCK_TRY(names_in(parsed, 1, "one lock at a time"));
  return options.names.empty() ? name_is_missing(parsed) : Result<void>();
}

Result<void> read_words_of(DoctorOptions& options, const Parsed& parsed) {
  const auto words = RLOCK_TRY(words_of(parsed, 1, "one PREFIX at a time"));
  if (!words.empty()) options.prefix = RLOCK_TRY(lock::parse_prefix(words[0]));
  return {};
}

Result<void> read_words_of(ConfigOptions&, const Parsed& parsed) {
  RLOCK_TRY(words_of(parsed, 0, "rlock config takes options only"));
  return {};
}

Result<void> read_words_of(LocalOptions& options, const Parsed& parsed) {
  using Action = LocalOptions::Action;
  const auto words = RLOCK_TRY(words_of(parsed));
  const std::string word = words.size() == 1 ? words[0] : "";
  if (word != "status" && word != "stop" && word != "serve") {
    return wrong_words("local wants one of status, stop and serve");
  }
  options.action = word == "status" ? Action::status : word == "stop" ? Action::stop : Action::serve;
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
