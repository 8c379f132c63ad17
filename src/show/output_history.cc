// SPDX-License-Identifier: MIT
#include "show/output_history.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/date.h"
#include "base/duration.h"
#include "base/text.h"

namespace rlock::cli {
namespace {

using lock::PastHold;

std::string span(const std::optional<milliseconds>& time) { return time ? rough_duration(*time) : "-"; }

std::string signal_text(int signal) {
  // sigabbrev_np(3) is glibc's alone.
#define NAMED(name) \
  case name: return #name
  switch (signal) {
    NAMED(SIGHUP);
    NAMED(SIGINT);
    NAMED(SIGQUIT);
    NAMED(SIGILL);
    NAMED(SIGTRAP);
    NAMED(SIGABRT);
    NAMED(SIGBUS);
    NAMED(SIGFPE);
    NAMED(SIGKILL);
    NAMED(SIGUSR1);
    NAMED(SIGSEGV);
    NAMED(SIGUSR2);
    NAMED(SIGPIPE);
    NAMED(SIGALRM);
    NAMED(SIGTERM);
    NAMED(SIGXCPU);
    NAMED(SIGXFSZ);
    NAMED(SIGVTALRM);
    NAMED(SIGPROF);
    NAMED(SIGSYS);
    default: return "signal " + std::to_string(signal);
  }
#undef NAMED
}

std::string end_text(const PastHold& hold) {
  if (hold.end == "exited") return hold.value ? (*hold.value == 0 ? "ok" : "exit " + std::to_string(*hold.value)) : "?";
  if (hold.end == "signalled") return hold.value ? signal_text(*hold.value) : "signal";
  if (hold.end == "timed-out") return "too long";
  if (hold.end == "hook-failed") return "hook failed";
  if (hold.end == "not-found") return "not found";
  if (hold.end == "not-executable") return "not executable";
  if (hold.end == "stopped") return hold.why.empty() ? "stopped" : "stopped: " + escaped(hold.why, 200);
  return hold.end.empty() ? "-" : escaped(hold.end, 40);
}

// "2026-01-31T12:00:00Z", or "01-31 12:00".
std::string ended_text(const PastHold& hold, Zone zone, bool shortly) {
  std::string text = date_text(hold.ended, zone);
  if (!shortly || text.size() < 16) return text;
  return text.substr(5, 5) + " " + text.substr(11, 5);
}

// The columns up to RESULT, of which something is to be seen on each screen: names are shortened first, then the dates,
// and then columns are left out.
struct Layout {
  bool ended = true, short_dates = false, held = true, waited = true;
  std::size_t name = std::string::npos;  // columns at most

  static Layout of(const std::vector<PastHold>& holds, const Screen& screen, Zone zone) {
    Layout layout;
    if (!screen.width) return layout;
    constexpr std::size_t kGap = 2, kShortestName = 8, kEnoughOfResult = 12;
    std::size_t name = 4, held = 4, waited = 6, result = 6, dates = 5, short_dates = 5;
    for (const PastHold& hold : holds) {
      name = std::max(name, columns(hold.name.display()));
      held = std::max(held, columns(span(hold.held)));
      waited = std::max(waited, columns(span(hold.waited)));
      result = std::max(result, columns(result_text(hold)));
      dates = std::max(dates, columns(ended_text(hold, zone, false)));
      short_dates = std::max(short_dates, columns(ended_text(hold, zone, true)));
    }
    // The columns that the others leave to names.
    const auto left = [&] {
      const std::size_t others = (layout.ended ? (layout.short_dates ? short_dates : dates) + kGap : 0) +
                                 (layout.held ? held + kGap : 0) + (layout.waited ? waited + kGap : 0) + kGap +
                                 std::min(result, kEnoughOfResult);
      return *screen.width > others ? *screen.width - others : 0;
    };
    for (const auto& [what, value] : {std::pair(&layout.short_dates, true), {&layout.waited, false},
                                      {&layout.held, false}, {&layout.ended, false}}) {
      if (left() >= std::min(name, kShortestName)) break;
      *what = value;
    }
    layout.name = std::max(left(), std::size_t{1});
    return layout;
  }
};

}  // namespace

std::string result_text(const PastHold& hold) {
  const std::string why = hold.why.empty() ? "" : ": " + escaped(hold.why, 200);
  if (hold.taken_away()) {
    return "taken away" + (hold.by.empty() ? "" : " by " + escaped(hold.by, 200)) + why;
  }
  if (hold.expired()) return "lease ran out";
  if (hold.lost()) return "lost" + why;
  return end_text(hold) + (hold.leftovers.empty() ? "" : "; left " + escaped(hold.leftovers, 200));
}

std::string holder_text(const PastHold& hold) {
  if (hold.who.user.empty() && hold.who.host.empty()) return "-";
  return escaped(hold.who.user, 40) + "@" + escaped(hold.who.host, 80);
}

std::string history_table(const std::vector<PastHold>& holds, const Screen& screen, Zone zone) {
  const Layout layout = Layout::of(holds, screen, zone);
  std::vector<Row> rows = {{}};
  const auto add = [&](bool wanted, Cell cell) {
    if (wanted) rows.back().push_back(std::move(cell));
  };
  const auto add_head = [&](bool wanted, const char* text) { add(wanted, {text, Style::heading}); };
  add_head(layout.ended, "ENDED");
  add_head(true, "NAME");
  add_head(layout.held, "HELD");
  add_head(layout.waited, "WAITED");
  for (const char* heading : {"RESULT", "HOLDER", "PID", "COMMAND", "REASON"}) add_head(true, heading);
  for (const PastHold& hold : holds) {
    rows.emplace_back();
    add(layout.ended, ended_text(hold, zone, layout.short_dates));
    add(true, cut_to(hold.name.display(), layout.name));
    add(layout.held, span(hold.held));
    add(layout.waited, span(hold.waited));
    add(true, {result_text(hold), hold.fine() ? Style::good : Style::bad});
    add(true, holder_text(hold));
    add(true, hold.who.pid > 0 ? std::to_string(hold.who.pid) : "-");
    add(true, escaped(hold.who.command, 60));
    add(true, escaped(hold.who.reason, 80));
  }
  return table(rows, screen);
}

}  // namespace rlock::cli
