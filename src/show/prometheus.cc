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

// The metrics of one lock. Those without a value are not printed.
struct Measures {
  std::optional<double> held, slots, taken, waiters, held_seconds, overdue, expected_wait, deadlock, last_status,
      last_duration, last_end, last_success;
  // Counters start at 0, because Prometheus would not see an increase from nothing to 1.
  std::optional<double> losses = 0, skips = 0, forced = 0;
};

struct Metric {
  std::string_view name, type, help;
  std::optional<double> Measures::* value;
};

constexpr Metric kMetrics[] = {
    {"rlock_held", "gauge", "1 if the lock is held, else 0.", &Measures::held},
    {"rlock_slots", "gauge", "How many slots the semaphore has.", &Measures::slots},
    {"rlock_slots_taken", "gauge", "How many of them are taken.", &Measures::taken},
    {"rlock_held_seconds", "gauge", "How long the holder has held the lock; of several holders, the longest time.",
     &Measures::held_seconds},
    {"rlock_overdue_seconds", "gauge",
     "For how long a renewal of the lease has been overdue; 0 if renewals come in time.", &Measures::overdue},
    {"rlock_waiters", "gauge", "How many are waiting for the lock.", &Measures::waiters},
    {"rlock_expected_wait_seconds", "gauge",
     "How long a job that asks for the lock now will probably wait, judging by the last jobs.",
     &Measures::expected_wait},
    {"rlock_deadlock", "gauge", "1 if jobs that hold or wait for the lock wait for each other, else 0.",
     &Measures::deadlock},
    {"rlock_last_status", "gauge", "The exit status of the last recorded job.", &Measures::last_status},
    {"rlock_last_duration_seconds", "gauge", "How long that job held the lock.", &Measures::last_duration},
    {"rlock_last_end_timestamp_seconds", "gauge", "When that hold ended.", &Measures::last_end},
    {"rlock_last_success_timestamp_seconds", "gauge", "When a job with --once or --once-per last succeeded.",
     &Measures::last_success},
    {"rlock_losses_total", "counter", "How often the lock was lost while a job ran.", &Measures::losses},
    {"rlock_skips_total", "counter", "How often a job did not get the lock.", &Measures::skips},
    {"rlock_forced_total", "counter", "How often the lock was taken away.", &Measures::forced},
};

double seconds(milliseconds time) { return static_cast<double>(time.count()) / 1000; }

struct ServerMetric {
  std::string_view name, help;
  std::optional<double> (*value)(const ServerState&);
};

constexpr ServerMetric kServerMetrics[] = {
    {"rlock_server_up", "1 if this server of the quorum answers, else 0.",
     [](const ServerState& server) { return server.up ? std::optional<double>(*server.up) : std::nullopt; }},
    {"rlock_epoch_age_seconds", "For how long the server has forgotten no locks.",
     [](const ServerState& server) -> std::optional<double> {
       if (!server.epoch || !server.epoch->current || !server.epoch->age) return {};
       return seconds(*server.epoch->age);
     }},
    {"rlock_grants_begin_seconds", "In how long the epoch guard lets the server grant locks; 0: it does now.",
     [](const ServerState& server) -> std::optional<double> {
       if (!server.epoch || !server.epoch->current) return {};
       return server.epoch->back ? seconds(server.epoch->back->left) : 0;
     }},
};

// As the shell saw it; none if unknown.
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

// Puts a backslash before each of these characters.
std::string with_backslashes(std::string_view text, std::string_view characters) {
  std::string out;
  for (const char c : text) {
    if (characters.contains(c)) out += '\\';
    out += c;
  }
  return out;
}

// True for xNN, as escaped() writes bytes.
bool is_byte(std::string_view text) {
  if (!text.starts_with('x') || text.size() < 3) return false;
  return text.substr(1, 2).find_first_not_of("0123456789abcdef") == text.npos;
}

// True if the text contains \\, \xNN or \u{N}, which escaped() writes.
bool looks_escaped(std::string_view text) {
  for (auto at = text.find('\\'); at != text.npos; at = text.find('\\', at + 1)) {
    const std::string_view rest = text.substr(at + 1);
    if (rest.starts_with('\\') || is_byte(rest) || rest.starts_with("u{")) return true;
  }
  return false;
}

// Escapes a name unless it is readable UTF-8. Also escapes names that look escaped, so that no two locks share a label.
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

// Empty if there are no lines.
std::string metric_text(std::string_view name, std::string_view type, std::string_view help, const std::string& lines) {
  if (lines.empty()) return "";
  const std::string of(name);
  return "# HELP " + of + " " + std::string(help) + "\n# TYPE " + of + " " + std::string(type) + "\n" + lines;
}

// Escapes backslashes and quotes; no value contains a newline.
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
    one.deadlock = status.deadlock.empty() ? 0 : 1;
    one.held = status.state == lock::Status::State::held ? 1 : 0;
    one.waiters = static_cast<double>(status.waiting);
    if (status.successes && !status.successes->known.empty()) {
      one.last_success = seconds(status.successes->known.front().at);
    }
    if (status.lock.layout == lock::Layout::semaphore) {
      one.slots = static_cast<double>(status.slots);
      one.taken = static_cast<double>(status.taken);
    }
    const lock::HolderView* holder = status.oldest_holder();
    if (holder && holder->held_for) one.held_seconds = seconds(*holder->held_for);
    if (const auto forecast = lock::forecast(status); forecast && forecast->wait) {
      one.expected_wait = seconds(*forecast->wait);
    }
    for (const lock::HolderView& each : status.holders) {
      if (each.renewed_ago) one.overdue = std::max(one.overdue.value_or(0), seconds(each.overdue));
    }
  }
  for (const lock::PastHold& hold : last) {
    Measures& one = all[hold.name];
    if (one.last_end) continue;  // a newer hold from another server of the quorum
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
                            const std::map<std::string, ServerState>& servers) {
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
  for (const ServerMetric& metric : kServerMetrics) {
    std::string lines;  // addresses are already escaped
    for (const auto& [address, server] : servers) {
      const auto value = metric.value(server);
      if (value) lines += line(metric.name, "server", address, *value);
    }
    text += metric_text(metric.name, "gauge", metric.help, lines);
  }
  return text;
}

}  // namespace rlock::cli
