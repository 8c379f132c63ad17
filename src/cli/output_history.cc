// SPDX-License-Identifier: MIT
#include "cli/output_history.h"

#include <csignal>
#include <cstring>

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
  if (hold.end == "exited") return hold.value ? (*hold.value == 0 ? "0" : "status " + std::to_string(*hold.value)) : "?";
  if (hold.end == "signalled") return hold.value ? signal_text(*hold.value) : "signal";
  if (hold.end == "timed-out") return "too long";
  if (hold.end == "hook-failed") return "hook failed";
  if (hold.end == "not-found") return "not found";
  if (hold.end == "not-executable") return "not executable";
  if (hold.end == "stopped") return hold.why.empty() ? "stopped" : "stopped: " + escaped(hold.why, 200);
  return hold.end.empty() ? "-" : escaped(hold.end, 40);
}

}  // namespace

std::string result_text(const PastHold& hold) {
  const std::string why = hold.why.empty() ? "" : ": " + escaped(hold.why, 200);
  if (hold.taken_away()) {
    return "taken away" + (hold.by.empty() ? "" : " by " + escaped(hold.by, 200)) + why;
  }
  if (hold.lost()) return "lost" + why;
  return end_text(hold);
}

std::string holder_text(const PastHold& hold) {
  if (hold.who.user.empty() && hold.who.host.empty()) return "-";
  return escaped(hold.who.user, 40) + "@" + escaped(hold.who.host, 80);
}

std::string history_table(const std::vector<PastHold>& holds, const Screen& screen) {
  std::vector<Row> rows = {{}};
  for (const char* heading : {"ENDED", "NAME", "HELD", "WAITED", "RESULT", "HOLDER", "PID", "COMMAND", "REASON"}) {
    rows.front().emplace_back(heading, Style::heading);
  }
  for (const PastHold& hold : holds) {
    rows.push_back({date_text(hold.ended),
                    hold.name.display(),
                    span(hold.held),
                    span(hold.waited),
                    {result_text(hold), hold.fine() ? Style::good : Style::bad},
                    holder_text(hold),
                    hold.who.pid > 0 ? std::to_string(hold.who.pid) : "-",
                    escaped(hold.who.command, 60),
                    escaped(hold.who.reason, 80)});
  }
  return table(rows, screen);
}

}  // namespace rlock::cli
