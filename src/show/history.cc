// SPDX-License-Identifier: MIT
#include "show/history.h"

#include <algorithm>
#include <csignal>
#include <string_view>
#include <utility>

#include "base/date.h"
#include "base/duration.h"
#include "base/text.h"
#include "show/status.h"

namespace rlock::cli {
namespace {

using lock::PastHold;

// sigabbrev_np(3) exists only in glibc.
constexpr std::pair<int, const char*> kSignals[] = {
    {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},     {SIGILL, "SIGILL"},   {SIGTRAP, "SIGTRAP"},
    {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},       {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"},
    {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"}, {SIGPIPE, "SIGPIPE"},     {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"},
    {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}, {SIGVTALRM, "SIGVTALRM"}, {SIGPROF, "SIGPROF"}, {SIGSYS, "SIGSYS"}};

std::string signal_text(int signal) {
  const auto* found = std::ranges::find(kSignals, signal, &std::pair<int, const char*>::first);
  return found != std::end(kSignals) ? found->second : "signal " + std::to_string(signal);
}

std::string once_text(const PastHold& hold) { return hold.once.empty() ? "" : " (" + escaped(hold.once, 60) + ")"; }

std::string end_text(const PastHold& hold) {
  if (hold.end == "exited") return hold.value ? (*hold.value == 0 ? "ok" : "exit " + std::to_string(*hold.value)) : "?";
  if (hold.end == "signalled") return hold.value ? signal_text(*hold.value) : "signal";
  constexpr std::pair<std::string_view, const char*> words[] = {{"timed-out", "too long"},
                                                                {"hook-failed", "hook failed"},
                                                                {"not-found", "not found"},
                                                                {"not-executable", "not executable"}};
  for (const auto& [end, text] : words) {
    if (hold.end == end) return text;
  }
  if (hold.end == "stopped") return hold.why.empty() ? "stopped" : "stopped: " + escaped(hold.why, 200);
  return hold.end.empty() ? "-" : escaped(hold.end, 40);
}

std::size_t width_of(const std::vector<Row>& rows, std::size_t column) {
  std::size_t most = 0;
  for (const Row& row : rows) most = std::max(most, columns(row[column].text));
  return most;
}

// Makes the columns up to RESULT fit on a narrow screen: it first shortens dates, then drops columns, then cuts names.
void fit_history(std::vector<Row>& rows, std::size_t width) {
  constexpr std::size_t kGap = 2, kShortestName = 8, kEnoughOfResult = 12;
  std::string shown = "enhwr";  // ENDED, NAME, HELD, WAITED, RESULT
  const auto left_for_names = [&] {
    std::size_t others = std::min(width_of(rows, shown.size() - 1), kEnoughOfResult);
    for (std::size_t i = 0; shown[i] != 'r'; ++i) others += kGap + (shown[i] == 'n' ? 0 : width_of(rows, i));
    return width > others ? width - others : 0;
  };
  const auto has_room = [&] { return left_for_names() >= std::min(width_of(rows, shown.find('n')), kShortestName); };
  if (!has_room()) {
    for (Row& row : rows) {
      std::string& date = row.front().text;  // "2026-01-31T12:00:00Z" becomes "01-31 12:00"
      if (date.size() >= 16) date = date.substr(5, 5) + " " + date.substr(11, 5);
    }
  }
  for (const char column : {'w', 'h', 'e'}) {
    if (has_room()) break;
    const std::size_t at = shown.find(column);
    for (Row& row : rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(at));
    shown.erase(at, 1);
  }
  const std::size_t name = shown.find('n'), most = std::max(left_for_names(), std::size_t{1});
  for (auto row = rows.begin() + 1; row != rows.end(); ++row) (*row)[name].text = cut_to((*row)[name].text, most);
}

constexpr std::size_t kUnknownWidth = 100, kNarrowest = 8, kLongestLabel = 32;

struct Marks {
  std::string_view waited, fine, bad;
};
constexpr milliseconds kLongestBefore = std::chrono::days(30);
constexpr Marks kBlocks{"░", "█", "▓"}, kAscii{".", "#", "x"};

std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  while (times-- > 0) out += text;
  return out;
}

std::string padded(std::string text, std::size_t width) {
  text = cut_to(text, width);
  return text + std::string(width - columns(text), ' ');
}

class Picture {
 public:
  Picture(const std::vector<PastHold>& holds, const Screen& screen, Zone zone)
      : holds_(holds), screen_(screen), zone_(zone), marks_(screen.unicode ? kBlocks : kAscii), span_(span_of(holds)) {
    const std::size_t width = std::max(screen.width.value_or(kUnknownWidth), kNarrowest);
    label_ = std::min(width / 3, kLongestLabel);
    bars_ = width - label_ - 1;
  }

  std::string text() const {
    std::string text = axis();
    for (const auto& [name, holds] : by_lock(holds_)) {
      text += styled(cut_to(name.display(), label_ + 1 + bars_), Style::heading, screen_) + "\n";
      for (const PastHold* hold : holds) text += line_of(*hold);
    }
    return text + legend();
  }

 private:
  // The column of a time, from 0 to bars_.
  std::size_t column(milliseconds time) const {
    return static_cast<std::size_t>(span_.part(time - span_.begin) * static_cast<double>(bars_));
  }

  // The first and the last time, shortened if necessary.
  std::string axis() const {
    std::string begin = date_text(span_.begin, zone_), end = date_text(span_.end, zone_);
    // Positions and lengths in "2026-01-31T12:00:00Z".
    constexpr std::pair<std::size_t, std::size_t> kToTheMinute{0, 16}, kDate{0, 10}, kTime{11, 8};
    const bool of_days = span_.length() > std::chrono::days(1);
    for (const auto& [first, length] : {of_days ? kToTheMinute : kTime, of_days ? kDate : kTime}) {
      if (bars_ >= begin.size() + end.size() + 1 || std::min(begin.size(), end.size()) < first + length) break;
      begin = begin.substr(first, length);
      end = end.substr(first, length);
    }
    if (bars_ < begin.size() + end.size() + 1) return fitted(begin + " to " + end + "\n", screen_);
    return std::string(label_ + 1, ' ') + begin + std::string(bars_ - begin.size() - end.size(), ' ') + end + "\n";
  }

  std::string line_of(const PastHold& hold) const {
    const std::size_t asked = column(asked_at(hold));
    std::size_t begin = column(hold.since().value_or(hold.ended)), end = column(hold.ended);
    if (end == begin) end = std::min(end + 1, bars_);  // keep it visible
    begin = std::min(begin, end - 1);
    const std::string label = holder_text(hold) + (hold.held ? " " + rough_duration(*hold.held) : "");
    return padded(label, label_) + " " + std::string(std::min(asked, begin), ' ') +
           styled(repeated(marks_.waited, begin - std::min(asked, begin)), Style::busy, screen_) +
           styled(repeated(hold.fine() ? marks_.fine : marks_.bad, end - begin), hold.fine() ? Style::good : Style::bad,
                  screen_) +
           "\n";
  }

  std::string legend() const {
    const auto mark = [](std::string_view bar, const char* meaning) { return std::string(bar) + " " + meaning; };
    return rlock::cli::line_of({{mark(marks_.waited, "waited"), Style::busy},
                                {mark(marks_.fine, "held"), Style::good},
                                {mark(marks_.bad, "failed, lost or taken away"), Style::bad}},
                               {0, 0, 0}, screen_) +
           "\n";
  }

  const std::vector<PastHold>& holds_;
  const Screen& screen_;
  const Zone zone_;
  Marks marks_;
  Span span_;
  std::size_t label_ = 0, bars_ = 0;
};

}  // namespace

std::string result_text(const PastHold& hold) {
  const std::string why = hold.why.empty() ? "" : ": " + escaped(hold.why, 200);
  if (hold.taken_away()) {
    return "taken away" + (hold.by.empty() ? "" : " by " + escaped(hold.by, 200)) + why;
  }
  if (hold.expired()) return "lease ran out";
  if (hold.lost()) return "lost" + why;
  return end_text(hold) + once_text(hold) + (hold.leftovers.empty() ? "" : "; left " + escaped(hold.leftovers, 200));
}

std::string holder_text(const PastHold& hold) {
  return hold.who.user.empty() && hold.who.host.empty() ? "-" : user_and_host(hold.who);
}

std::string time_text(const std::optional<milliseconds>& time) { return time ? rough_duration(*time) : "-"; }

double Span::part(milliseconds time) const {
  return std::clamp(static_cast<double>(time.count()) / static_cast<double>(length().count()), 0.0, 1.0);
}

std::string history_table(const std::vector<PastHold>& holds, const Screen& screen, Zone zone) {
  std::vector<Row> rows = {{}};
  for (const char* heading : {"ENDED", "NAME", "HELD", "WAITED", "RESULT", "HOLDER", "PID", "COMMAND", "REASON"}) {
    rows.front().emplace_back(heading, Style::heading);
  }
  for (const PastHold& hold : holds) {
    rows.push_back({date_text(hold.ended, zone),
                    hold.name.display() + (hold.slots.numbers.empty() ? "" : " (" + slots_text(hold.slots) + ")"),
                    time_text(hold.held),
                    time_text(hold.waited),
                    {result_text(hold), hold.fine() ? Style::good : Style::bad},
                    holder_text(hold),
                    hold.who.pid > 0 ? std::to_string(hold.who.pid) : "-",
                    escaped(hold.who.command, 60),
                    escaped(hold.who.reason, 80)});
  }
  if (screen.width) fit_history(rows, *screen.width);
  return table(rows, screen);
}

milliseconds asked_at(const PastHold& hold) { return hold.since().value_or(hold.ended) - hold.waited.value_or(0ms); }

Span span_of(const std::vector<const PastHold*>& holds) {
  Span span{milliseconds::max(), milliseconds::min()};
  milliseconds first_end = milliseconds::max();
  for (const PastHold* hold : holds) {
    span.begin = std::min(span.begin, std::max(asked_at(*hold), 0ms));
    first_end = std::min(first_end, hold->ended);
    span.end = std::max(span.end, hold->ended);
  }
  span.begin = std::max(span.begin, first_end - kLongestBefore);
  span.end = std::max(span.end, span.begin + 1s);
  return span;
}

Span span_of(const std::vector<PastHold>& holds) {
  std::vector<const PastHold*> all;
  for (const PastHold& hold : holds) all.push_back(&hold);
  return span_of(all);
}

ByLock by_lock(const std::vector<PastHold>& holds) {
  ByLock all;
  for (auto hold = holds.rbegin(); hold != holds.rend(); ++hold) all[hold->name].push_back(&*hold);
  return all;
}

std::string timeline(const std::vector<PastHold>& holds, const Screen& screen, Zone zone) {
  return Picture(holds, screen, zone).text();
}

}  // namespace rlock::cli
