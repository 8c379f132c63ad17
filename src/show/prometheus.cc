// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string_view>
#include <tuple>

#include "base/exit_status.h"
#include "base/text.h"
#include "show/status.h"

namespace rlock::cli {
namespace {

// All that is known of one lock; none: that measure has no line.
struct Measures {
  std::optional<double> held, waiters, held_seconds, overdue, last_status, last_duration, last_end;
  // From 0 on for each: Prometheus sees no increase in a counter that comes with its first 1.
  std::optional<double> losses = 0, skips = 0, forced = 0;
};

struct Metric {
  std::string_view name, type, help;
  std::optional<double> Measures::* value;
};

constexpr Metric kMetrics[] = {
    {"rlock_held", "gauge", "1 if the lock is held, else 0.", &Measures::held},
    {"rlock_held_seconds", "gauge", "How long its holder has had it; of several, the longest time.",
     &Measures::held_seconds},
    {"rlock_overdue_seconds", "gauge",
     "For how long a renewal of its lease has been missing; 0 if the renewals come in time.", &Measures::overdue},
    {"rlock_waiters", "gauge", "How many wait for it.", &Measures::waiters},
    {"rlock_last_status", "gauge", "The exit status of the last job that was written down.", &Measures::last_status},
    {"rlock_last_duration_seconds", "gauge", "How long that job held the lock.", &Measures::last_duration},
    {"rlock_last_end_timestamp_seconds", "gauge", "When that hold ended.", &Measures::last_end},
    {"rlock_losses_total", "counter", "How often the lock was lost while a job ran.", &Measures::losses},
    {"rlock_skips_total", "counter", "How often a job did not get the lock.", &Measures::skips},
    {"rlock_forced_total", "counter", "How often the lock was taken away.", &Measures::forced},
};

double seconds(milliseconds time) { return static_cast<double>(time.count()) / 1000; }

// As the shell has seen it; none where nobody knows.
std::optional<double> status_of(const lock::PastHold& hold) {
  constexpr std::pair<std::string_view, int> statuses[] = {
      {"stopped", kLost},       {"timed-out", kTimedOut},           {"hook-failed", kConfig},
      {"not-found", kNotFound}, {"not-executable", kNotExecutable}, {"error", kSystem}};
  if (hold.lost()) return kLost;
  if (hold.end == "exited" && hold.value) return *hold.value;
  if (hold.end == "signalled" && hold.value) return 128 + *hold.value;
  for (const auto& [end, status] : statuses) {
    if (hold.end == end) return status;
  }
  if (hold.outcome == lock::PastHold::Outcome::forced) return kLost;
  return {};
}

// With a backslash in front of each of these characters.
std::string with_backslashes(std::string_view text, std::string_view characters) {
  std::string out;
  for (const char c : text) {
    if (characters.contains(c)) out += '\\';
    out += c;
  }
  return out;
}

// xNN: of two hexadecimal digits, as escaped() writes them.
bool is_byte(std::string_view text) {
  if (!text.starts_with('x') || text.size() < 3) return false;
  return text.substr(1, 2).find_first_not_of("0123456789abcdef") == text.npos;
}

// escaped() makes such texts: \\, \xNN, \u{N}.
bool looks_escaped(std::string_view text) {
  for (auto at = text.find('\\'); at != text.npos; at = text.find('\\', at + 1)) {
    const std::string_view rest = text.substr(at + 1);
    if (rest.starts_with('\\') || is_byte(rest) || rest.starts_with("u{")) return true;
  }
  return false;
}

// The name as it is, where it is UTF-8 that shows all that it holds; else escaped, whole. A name that looks like an
// escaped one is escaped, too: no two locks have one label.
std::string shown_label(const std::string& name) {
  const std::string escaped_name = escaped(name, std::string::npos);
  const bool readable = escaped_name == with_backslashes(name, "\\");
  return readable && !looks_escaped(name) ? name : escaped_name;
}

std::string number_text(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

// The heading of a metric, and its lines; nothing where there is none.
std::string metric_text(std::string_view name, std::string_view type, std::string_view help, const std::string& lines) {
  if (lines.empty()) return "";
  const std::string of(name);
  return "# HELP " + of + " " + std::string(help) + "\n# TYPE " + of + " " + std::string(type) + "\n" + lines;
}

// Backslash and quote have a meaning in a label; no value holds a newline.
std::string line(std::string_view metric, std::string_view label, const std::string& value, double number) {
  return std::string(metric) + "{" + std::string(label) + "=\"" + with_backslashes(value, "\\\"") + "\"} " +
         number_text(number) + "\n";
}

std::map<lock::LockName, Measures> measures_of(const std::vector<lock::Status>& states,
                                               const std::vector<lock::PastHold>& last,
                                               const std::map<lock::LockName, lock::Totals>& totals) {
  std::map<lock::LockName, Measures> all;
  for (const lock::Status& status : states) {
    Measures& one = all[status.name()];
    one.held = status.state == lock::Status::State::held ? 1 : 0;
    one.waiters = static_cast<double>(status.waiting);
    const lock::HolderView* holder = status.oldest_holder();
    if (holder && holder->held_for) one.held_seconds = seconds(*holder->held_for);
    for (const lock::HolderView& each : status.holders) {
      if (each.renewed_ago) one.overdue = std::max(one.overdue.value_or(0), seconds(each.overdue));
    }
  }
  for (const lock::PastHold& hold : last) {
    Measures& one = all[hold.name];
    if (one.last_end) continue;  // a newer one, which another server of a quorum lacks
    one.last_status = status_of(hold);
    one.last_end = seconds(hold.ended);
    if (hold.held) one.last_duration = seconds(*hold.held);
  }
  for (const auto& [name, total] : totals) {
    Measures& one = all[name];
    std::tie(one.losses, one.skips, one.forced) = std::tuple(total.losses, total.skips, total.forced);
  }
  return all;
}

}  // namespace

std::string prometheus_text(const std::vector<lock::Status>& states, const std::vector<lock::PastHold>& last,
                            const std::map<lock::LockName, lock::Totals>& totals,
                            const std::map<std::string, bool>& servers) {
  const auto all = measures_of(states, last, totals);
  std::string text;
  for (const Metric& metric : kMetrics) {
    std::string lines;
    for (const auto& [name, measures] : all) {
      const auto value = measures.*metric.value;
      if (value) lines += line(metric.name, "name", shown_label(name.text()), *value);
    }
    text += metric_text(metric.name, metric.type, metric.help, lines);
  }
  std::string lines;  // the addresses are escaped already
  for (const auto& [address, up] : servers) lines += line("rlock_server_up", "server", address, up ? 1 : 0);
  return text + metric_text("rlock_server_up", "gauge", "1 if that server of the quorum answers, else 0.", lines);
}

}  // namespace rlock::cli
