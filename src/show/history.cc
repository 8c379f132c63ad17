// SPDX-License-Identifier: MIT
#include "show/history.h"

#include <csignal>

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

std::string end_text(const PastHold& hold) {
  if (hold.end == "exited") return hold.value ? (*hold.value == 0 ? "ok" : "exit " + std::to_string(*hold.value)) : "?";
  if (hold.end == "signalled") return hold.value ? signal_text(*hold.value) : "signal";
  constexpr std::pair<std::string_view, const char*> words[] = {{"", "-"},
                                                                {"timed-out", "too long"},
                                                                {"hook-failed", "hook failed"},
                                                                {"not-found", "not found"},
                                                                {"not-executable", "not executable"}};
  for (const auto& [end, text] : words) {
    if (hold.end == end) return text;
  }
  if (hold.end == "stopped") return hold.why.empty() ? "stopped" : "stopped: " + escaped(hold.why, 200);
  return escaped(hold.end, 40);
}

// The outcome of the job: "ok", "exit 3", "SIGKILL", "lost: why", "taken away by whom".
std::string result_text(const PastHold& hold) {
  const std::string why = hold.why.empty() ? "" : ": " + escaped(hold.why, 200);
  if (hold.taken_away()) {
    return "taken away" + (hold.by.empty() ? "" : " by " + escaped(hold.by, 200)) + why;
  }
  if (hold.expired()) return "lease ran out";
  if (hold.lost()) return "lost" + why;
  return end_text(hold) + (hold.once.empty() ? "" : " (" + escaped(hold.once, 60) + ")") +
         (hold.leftovers.empty() ? "" : "; left " + escaped(hold.leftovers, 200));
}

// "3m12s"; "-" if unknown.
std::string time_text(const std::optional<milliseconds>& time) { return time ? rough_duration(*time) : "-"; }

// "01-31 12:00" of "2026-01-31T12:00:00Z"
std::string short_date(const std::string& date) {
  return date.size() < 16 ? date : date.substr(5, 5) + " " + date.substr(11, 5);
}
std::string nothing(const std::string&) { return ""; }

std::string known_holder(const lock::HolderInfo& who) {
  return who.user.empty() && who.host.empty() ? "-" : who.user_and_host();
}

Row headings(std::initializer_list<const char*> words) {
  Row row;
  for (const char* word : words) row.emplace_back(word, Style::heading);
  return row;
}

constexpr std::size_t kDate = 0, kName = 1, kHeld = 2, kWaited = 3, kResult = 4, kHolder = 5, kCommand = 7;
// The result stays visible: dates become shorter, then names are cut, then columns are left out.
constexpr FitStep kSteps[] = {{kHolder, kCommand, 0, without_domain}, {kResult, kCommand, 12},
                              {kDate, kHolder, 0, short_date},        {kName, kResult, 8},
                              {kWaited, kResult, 0, nothing},         {kHeld, kResult, 0, nothing},
                              {kDate, kResult, 0, nothing},           {kName, kResult, 1}};

}  // namespace

HistoryTable::HistoryTable(const Screen& screen, Zone zone)
    : table_(screen, kSteps),
      zone_(zone),
      rows_{headings({"ENDED", "NAME", "HELD", "WAITED", "RESULT", "HOLDER", "PID", "COMMAND", "REASON"})} {}

std::string HistoryTable::add(const PastHold& hold) {
  constexpr std::size_t kTogether = 1000;
  rows_.push_back({date_text(hold.ended, zone_),
                   hold.name.display() + (hold.slots.numbers.empty() ? "" : " (" + slots_text(hold.slots) + ")"),
                   time_text(hold.held),
                   time_text(hold.waited),
                   {result_text(hold), hold.fine() ? Style::good : Style::bad},
                   known_holder(hold.who),
                   hold.who.pid > 0 ? std::to_string(hold.who.pid) : "-",
                   escaped(hold.who.command, 60),
                   remarks_of(hold.who, 80)});
  return rows_.size() < kTogether ? "" : end();
}

std::string HistoryTable::end() { return table_.lines(std::exchange(rows_, {})); }

std::string report_text(const std::vector<lock::Report>& reports, const Screen& screen) {
  constexpr std::size_t kMostCauses = 5;
  std::vector<Row> locks{headings({"NAME", "RUNS", "FAILED", "WAIT50", "WAIT95", "HELD50", "HELD95", "BUSY", "QUEUE"})};
  std::vector<Row> causes{headings({"NAME", "OTHERS WAITED", "HOLDS", "HOLDER", "COMMAND"})};
  const auto middle = [](const lock::Spread& spread) { return spread.median; };
  const auto most = [](const lock::Spread& spread) { return spread.p95; };
  for (const lock::Report& one : reports) {
    const std::string name = one.name.display();
    locks.push_back({name,
                     std::to_string(one.runs),
                     {std::to_string(one.failed), one.failed == 0 ? Style::none : Style::bad},
                     time_text(one.waited.transform(middle)),
                     time_text(one.waited.transform(most)),
                     time_text(one.held.transform(middle)),
                     time_text(one.held.transform(most)),
                     std::to_string(one.held_percent) + " %",
                     std::to_string(one.longest_queue)});
    for (const lock::Cause& cause : one.causes | std::views::take(kMostCauses)) {
      causes.push_back({name, rough_duration(cause.waited_for), std::to_string(cause.holds), known_holder(cause.who),
                        escaped(cause.who.command, 60)});
    }
  }
  const std::string text = Table(screen).lines(std::move(locks));
  return causes.size() == 1 ? text : text + "\n" + Table(screen).lines(std::move(causes));
}

}  // namespace rlock::cli
