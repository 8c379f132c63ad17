// SPDX-License-Identifier: MIT
#include "options/help.h"

#include <sys/ioctl.h>

#include <cstdlib>
#include <numeric>

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
  for (std::string_view gap; const std::string& word : split(text, ' ')) {
    if (!gap.empty() && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
      gap = "";
    }
    out.append(gap) += word;
    column += gap.size() + word.size();
    gap = " ";
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
      if (option->group == group && (option->marks & kRare) == 0) add_option(rows, *option, Detail::full, width);
    }
    if (!rows.empty()) out += "\n" + std::string(title) + ":\n" + rows;
  }
}

void add_names_of_common(std::string& out, std::size_t width) {
  const std::string names = joined(options_of(nullptr), ", --", &OptionSpec::name);
  out += "\n";
  add_wrapped(out, "Options of all subcommands, which rlock --help explains: --" + names, 0, 0, width);
}

// Keeps indented lines, which users copy, and wraps the paragraphs between them.
void add_notes(std::string& out, std::string_view notes, std::size_t width) {
  std::string paragraph;
  const auto flush = [&] {
    if (!paragraph.empty()) add_wrapped(out, paragraph, 0, 0, width);
    paragraph.clear();
  };
  for (const std::string& line : split(without_newline(notes), '\n')) {
    if (line.empty() || line.front() == ' ') {
      flush();
      out += line + "\n";
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + line;
    }
  }
  flush();
}

// Levenshtein's distance, in which two letters that are swapped count as one mistake, with three rows of its table.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, last, row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

// The nearest candidate by edit distance; empty if none is near.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  std::string_view found;
  std::size_t least = std::max<std::size_t>(word.size() / 3, 1) + 1;
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

// An option or a subcommand, and what other programs call it. One word may mean two.
constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
    {"wait", " timeout wait-timeout lock-timeout acquire-timeout "},
    {"server-timeout", " timeout "},
    {"nonblock", " nb nonblocking no-wait nowait "},
    {"lease", " ttl expire expiry "},
    {"exclusive", " e write "},
    {"shared", " read "},
    {"verbose", " log-level "},
    {"run", " exec with wait try start lock "},
    {"acquire", " lock "},
    {"renew", " extend refresh "},
    {"release", " unlock "},
    {"status", " list ls ps show who get info inspect holders "},
    {"force-unlock", " break kill stop delete steal rm free clear cancel "},
    {"history", " logs log "},
    {"doctor", " check ping test "},
};

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
  add_wrapped(text, "Usage: " + name + " [options]" + (spec.synopsis.empty() ? "" : " ") + std::string(spec.synopsis),
              0, 7, width);
  if (detail == Detail::brief) {
    text += "\n";
    for (const OptionSpec* option : options_of(&spec)) {
      if (option->marks & kOften) add_option(text, *option, detail, width);
    }
    text += "\n";
    add_wrapped(text, "Options and examples: " + name + " --help; all: man " + std::string(spec.page), 0, 0, width);
    return text;
  }
  std::vector<const OptionSpec*> own;
  for (const OptionSpec& option : spec.options()) own.push_back(&option);
  add_groups(text, own, width);
  add_names_of_common(text, width);
  if (!spec.notes.empty()) text += "\n";
  add_notes(text, spec.notes, width);
  return text;
}

std::vector<std::string_view> names_meant(std::string_view word, const std::vector<std::string_view>& known) {
  std::vector<std::string_view> found;
  for (const auto& [ours, theirs] : kElsewhere) {
    const bool meant = theirs.contains(" " + std::string(word) + " ");
    if (meant && std::ranges::find(known, ours) != known.end()) found.push_back(ours);
  }
  if (!found.empty()) return found;
  // Few mistype the first letter, but --lock-timeout is not --hook-timeout.
  std::vector<std::string_view> alike = known;
  std::erase_if(alike, [&](std::string_view one) { return !one.starts_with(word.substr(0, 1)); });
  if (const std::string_view near = nearest(word, alike); !near.empty()) found.push_back(near);
  return found;
}

std::string suggestion(std::string_view name, const std::vector<const OptionSpec*>& known,
                       std::string (*spelled)(std::string_view name)) {
  std::vector<std::string_view> names;
  for (const OptionSpec* option : known) {
    if ((option->marks & kRisky) == 0) names.push_back(option->name());
  }
  const auto meant = names_meant(name, names);
  const auto shown = [&](std::string_view one) {
    if (meant.size() == 1) return spelled(one);
    return spelled(one) + " (" + std::string(in_short((*std::ranges::find(known, one, &OptionSpec::name))->help)) + ")";
  };
  return meant.empty() ? "" : "; did you mean " + joined(meant, " or ", shown) + "?";
}

}  // namespace rlock::cli
