// SPDX-License-Identifier: MIT
#include "options/help.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "base/text.h"

namespace rlock::cli {
namespace {

constexpr std::size_t kNarrowest = 40, kWidest = 120, kUnknown = 80;
constexpr std::size_t kColumn = 30;      // where the descriptions of options begin
constexpr std::size_t kRoomyFrom = 60;   // on narrower screens, descriptions have lines of their own,
constexpr std::size_t kLinesIndent = 6;  // indented this far

// COLUMNS takes precedence, because a pipe has no width.
std::size_t terminal_width() {
  const char* columns = std::getenv("COLUMNS");
  long long width = columns ? whole_number(columns).value_or(0) : 0;
  winsize size{};
  if (width <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  return width <= 0 ? kUnknown : std::clamp(static_cast<std::size_t>(width), kNarrowest, kWidest);
}

// Appends `text`, wrapped at spaces. The last line of `out` has `column` bytes; new lines are indented.
void add_wrapped(std::string& out, std::string_view text, std::size_t column, std::size_t indent, std::size_t width) {
  bool first = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (!first && column + 1 + end > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
      first = true;
    }
    if (!first) out += ' ';
    out += text.substr(0, end);
    column += end + (first ? 0 : 1);
    first = false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  out += '\n';
}

// A row of two columns: `left`, and `text` from `column` on.
void add_row(std::string& out, std::string left, std::string_view text, std::size_t column, std::size_t width) {
  left.insert(0, "  ");
  if (width < kRoomyFrom) {
    out += left + " \n" + std::string(kLinesIndent, ' ');
    return add_wrapped(out, text, kLinesIndent, kLinesIndent, width);
  }
  left.resize(std::max(column, left.size() + 2), ' ');
  out += left;
  add_wrapped(out, text, left.size(), column, width);
}

void add_option(std::string& out, const OptionSpec& spec, Detail detail, std::size_t width) {
  std::string left(spec.names), text(detail == Detail::brief ? in_short(spec.help) : spec.help);
  if (!spec.value.empty()) left += " " + std::string(spec.value);
  const std::string fallback = spec.default_text();
  if (detail == Detail::full && !fallback.empty()) text += " [default: " + fallback + "]";
  add_row(out, left, text, kColumn, width);
}

constexpr std::pair<Group, std::string_view> kTitles[] = {
    {Group::general, "Options"},   {Group::waiting, "Waiting"},
    {Group::kind, "Kind of lock"}, {Group::supervision, "Lease and supervision"},
    {Group::hooks, "Hooks"},       {Group::common, "Options of all subcommands (server, messages)"}};

void add_groups(std::string& out, const std::vector<const OptionSpec*>& options, std::size_t width) {
  for (const auto& [group, title] : kTitles) {
    std::string rows;
    for (const OptionSpec* option : options) {
      if (option->group == group) add_option(rows, *option, Detail::full, width);
    }
    if (!rows.empty()) out += "\n" + std::string(title) + ":\n" + rows;
  }
}

// Keeps indented lines, which users copy, and wraps the paragraphs between them.
void add_notes(std::string& out, std::string_view notes, std::size_t width) {
  std::string paragraph;
  const auto flush = [&] {
    if (!paragraph.empty()) add_wrapped(out, paragraph, 0, 0, width);
    paragraph.clear();
  };
  while (!notes.empty()) {
    const std::string_view line = notes.substr(0, notes.find('\n'));
    notes.remove_prefix(std::min(line.size() + 1, notes.size()));
    if (line.empty() || line.front() == ' ') {
      flush();
      out += std::string(line) + "\n";
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + std::string(line);
    }
  }
  flush();
}

// Levenshtein's distance, with one row of its table.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

}  // namespace

std::string_view in_short(std::string_view help) { return help.substr(0, std::min(help.find("; "), help.find(" ("))); }

std::string overview() {
  const std::size_t width = terminal_width();
  std::string text =
      "rlock - run a command under a lock that many hosts share through Redis\n\n"
      "Usage: rlock [options] SUBCOMMAND ...\n\nSubcommands:\n";
  for (const SubcommandSpec& spec : subcommands()) add_row(text, std::string(spec.name), spec.summary, 16, width);
  add_groups(text, options_of(nullptr), width);
  return text +
         "\nTry it:   rlock --url local: run hello -- echo \"I have the lock\"\n"
         "Learn it: rlock help SUBCOMMAND, man rlock\n";
}

std::string subcommand_help(const SubcommandSpec& spec, Detail detail) {
  const std::size_t width = terminal_width();
  const std::string name = "rlock " + std::string(spec.name);
  std::string text;
  add_wrapped(text, name + " - " + std::string(spec.summary), 0, 0, width);
  text += "\n";
  add_wrapped(text, "Usage: " + name + " [options] " + std::string(spec.synopsis), 0, 7, width);
  const auto options = options_of(&spec);
  if (detail == Detail::brief) {
    text += "\n";
    for (const OptionSpec* option : options) {
      if (option->marks & kOften) add_option(text, *option, detail, width);
    }
    text += "\n";
    add_wrapped(text, "All options, and examples: " + name + " --help, man " + std::string(spec.page), 0, 0, width);
    return text;
  }
  add_groups(text, options, width);
  if (!spec.notes.empty()) text += "\n";
  add_notes(text, spec.notes, width);
  return text;
}

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  std::string_view found;
  std::size_t least = std::max<std::size_t>(word.size() / 3, 2) + 1;
  for (const std::string_view candidate : candidates) {
    // A prefix counts as near.
    const bool begun = candidate.starts_with(word) && word.size() > 2;
    const std::size_t longer = std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size());
    const std::size_t d = begun ? 1 : longer >= least ? longer : distance(word, candidate);
    if (d >= least) continue;
    least = d;
    found = candidate;
  }
  return found;
}

std::string suggestion(std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::string_view found = nearest(word, candidates);
  return found.empty() ? "" : "; did you mean " + std::string(found) + "?";
}

}  // namespace rlock::cli
