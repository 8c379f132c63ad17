// SPDX-License-Identifier: MIT
#include "options/words.h"

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "lock/rights.h"
#include "redis/endpoint.h"
#include "run/guard_state.h"

namespace rlock::cli {
namespace {

constexpr std::size_t kMostNames = run::kMostHolds;

std::unexpected<Error> wrong_words(std::string message) { return fail(Error::Code::usage, std::move(message)); }

// All positional arguments, before and after a --.
std::vector<std::string> words_of(const Parsed& parsed) {
  std::vector<std::string> all = parsed.names;
  if (parsed.command && !parsed.subcommand->command) {
    all.insert(all.end(), parsed.command->begin(), parsed.command->end());
  }
  return all;
}

Result<std::vector<lock::LockName>> names_in(const Parsed& parsed) {
  std::vector<lock::LockName> all;
  for (const std::string& text : words_of(parsed)) all.push_back(RLOCK_TRY(lock::LockName::parse(text)));
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
  if (all.size() > kMostNames) {
    return wrong_words(std::to_string(all.size()) + " names; at most " + std::to_string(kMostNames) + " at a time");
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

}  // namespace

Result<void> read_words(RunOptions& options, const Parsed& parsed, const std::vector<std::string>& arguments) {
  options.command = RLOCK_TRY(command_in(parsed, arguments));
  options.shown_command = options.command.front();
  options.names = RLOCK_TRY(sorted_names(parsed));
  return {};
}

Result<void> read_words(NamingOptions& options, const Parsed& parsed, const std::vector<std::string>&) {
  options.names = RLOCK_TRY(sorted_names(parsed));
  return {};
}

Result<void> read_words(StatusOptions& options, const Parsed& parsed, const std::vector<std::string>&) {
  options.names = RLOCK_TRY(names_in(parsed));
  return {};
}

Result<void> read_words(HistoryOptions& options, const Parsed& parsed, const std::vector<std::string>&) {
  options.names = RLOCK_TRY(names_in(parsed));
  return {};
}

Result<void> read_words(ForceUnlockOptions& options, const Parsed& parsed, const std::vector<std::string>&) {
  options.names = RLOCK_TRY(names_in(parsed));
  if (options.names.empty()) return name_is_missing(parsed);
  if (options.names.size() == 1) return {};
  return wrong_words("unexpected argument " + in_quotes(options.names[1].text()) + ": one lock at a time");
}

Result<void> read_words(DoctorOptions& options, const Parsed& parsed, const std::vector<std::string>&) {
  const auto words = words_of(parsed);
  if (words.size() > 1) return wrong_words("unexpected argument " + in_quotes(words[1]) + ": one PREFIX at a time");
  if (!words.empty()) options.prefix = RLOCK_TRY(lock::parse_prefix(words[0]));
  return {};
}

Result<void> read_words(ConfigOptions&, const Parsed& parsed, const std::vector<std::string>&) {
  const auto words = words_of(parsed);
  if (words.empty()) return {};
  return wrong_words("unexpected argument " + in_quotes(words.front()) + ": rlock config takes options only");
}

Result<void> read_words(LocalOptions& options, const Parsed& parsed, const std::vector<std::string>&) {
  using Action = LocalOptions::Action;
  constexpr std::pair<std::string_view, Action> actions[] = {
      {"status", Action::status}, {"stop", Action::stop}, {"serve", Action::serve}};
  const auto words = words_of(parsed);
  for (const auto& [word, action] : actions) {
    if (words.size() != 1 || words[0] != word) continue;
    options.action = action;
    return {};
  }
  return wrong_words("local wants one of status, stop and serve");
}

}  // namespace rlock::cli
