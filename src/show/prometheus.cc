// SPDX-License-Identifier: MIT
#include <charconv>

#include "show/status.h"

namespace rlock::cli {
namespace {

struct Metric {
  std::string_view name, type, label, help;
};

constexpr Metric kMetrics[] = {
    {"rlock_held", "gauge", "name", "1 if the lock is held, else 0."},
    {"rlock_slots", "gauge", "name", "How many slots the semaphore has."},
    {"rlock_slots_taken", "gauge", "name", "How many of them are taken."},
    {"rlock_held_seconds", "gauge", "name",
     "How long the holder has held the lock; of several holders, the longest time."},
    {"rlock_overdue_seconds", "gauge", "name",
     "For how long a renewal of the lease has been overdue; 0 if renewals come in time."},
    {"rlock_waiters", "gauge", "name", "How many are waiting for the lock."},
    {"rlock_expected_wait_seconds", "gauge", "name",
     "How long a job that asks for the lock now will probably wait, judging by the last jobs."},
    {"rlock_last_status", "gauge", "name", "The exit status of the last recorded job."},
    {"rlock_last_duration_seconds", "gauge", "name", "How long that job held the lock."},
    {"rlock_last_end_timestamp_seconds", "gauge", "name", "When that hold ended."},
    {"rlock_last_success_timestamp_seconds", "gauge", "name", "When a job with --once or --once-per last succeeded."},
    {"rlock_losses_total", "counter", "name", "How often the lock was lost while a job ran."},
    {"rlock_skips_total", "counter", "name", "How often a job did not get the lock."},
    {"rlock_forced_total", "counter", "name", "How often the lock was taken away."},
    {"rlock_server_up", "gauge", "server", "1 if this server of the quorum answers, else 0."},
    {"rlock_epoch_age_seconds", "gauge", "server", "For how long the server has forgotten no locks."},
    {"rlock_grants_begin_seconds", "gauge", "server",
     "In how long the epoch guard lets the server grant locks; 0: it does now."},
    {"rlock_left_out", "gauge", "prefix", "How many locks are missing here, because there are too many."},
};

// The values of each metric, by the value of its label. Metrics without a value are not printed.
using Samples = std::map<std::string_view, std::map<std::string, double>>;

double seconds(milliseconds time) { return static_cast<double>(time.count()) / 1000; }

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

// As it is, if it is readable UTF-8.
std::string shown_label(const std::string& name) { return inert(escaped(name, std::string::npos)); }

// The label of a lock. Its counters start at 0, because Prometheus would not see an increase from nothing to 1.
std::string label_of(Samples& samples, const lock::LockName& name) {
  const std::string label = shown_label(name.text());
  for (const char* counter : {"rlock_losses_total", "rlock_skips_total", "rlock_forced_total"}) {
    samples.at(counter).try_emplace(label, 0);
  }
  return label;
}

// None if no holder renews.
std::optional<milliseconds> longest_overdue(const lock::Status& status) {
  std::optional<milliseconds> longest;
  for (const lock::HolderView& each : status.holders) {
    if (each.renewed_ago) longest = std::max(longest.value_or(0ms), each.overdue);
  }
  return longest;
}

void add_state(Samples& samples, const lock::Status& status) {
  const std::string label = label_of(samples, status.name());
  const auto set = [&](std::string_view metric, double value) { samples.at(metric)[label] = value; };
  set("rlock_held", status.state == lock::Status::State::held ? 1 : 0);
  set("rlock_waiters", static_cast<double>(status.waiting));
  if (status.successes && !status.successes->known.empty()) {
    set("rlock_last_success_timestamp_seconds", seconds(status.successes->known.front().at));
  }
  if (status.lock.layout == lock::Layout::semaphore) {
    set("rlock_slots", static_cast<double>(status.slots));
    set("rlock_slots_taken", static_cast<double>(status.taken));
  }
  const lock::HolderView* holder = status.oldest_holder();
  if (holder && holder->held_for) set("rlock_held_seconds", seconds(*holder->held_for));
  const auto forecast = lock::forecast(status);
  if (forecast && forecast->wait) set("rlock_expected_wait_seconds", seconds(*forecast->wait));
  if (const auto overdue = longest_overdue(status)) set("rlock_overdue_seconds", seconds(*overdue));
}

void add_past(Samples& samples, const lock::PastHold& hold) {
  const std::string label = label_of(samples, hold.name);
  // There may be a newer hold, from another server of the quorum.
  if (!samples.at("rlock_last_end_timestamp_seconds").try_emplace(label, seconds(hold.ended)).second) return;
  if (const auto status = status_of(hold)) samples.at("rlock_last_status")[label] = *status;
  if (hold.held) samples.at("rlock_last_duration_seconds")[label] = seconds(*hold.held);
}

// Addresses are already escaped.
void add_server(Samples& samples, const std::string& address, const ServerState& server) {
  if (server.up) samples.at("rlock_server_up")[address] = *server.up;
  if (!server.epoch || !server.epoch->current) return;
  if (server.epoch->age) samples.at("rlock_epoch_age_seconds")[address] = seconds(*server.epoch->age);
  samples.at("rlock_grants_begin_seconds")[address] = server.epoch->back ? seconds(server.epoch->back->left) : 0;
}

std::string heading(std::string_view name, std::string_view type, std::string_view help) {
  const std::string of(name);
  return "# HELP " + of + " " + std::string(help) + "\n# TYPE " + of + " " + std::string(type) + "\n";
}

// `more`: other labels. No value contains a newline.
std::string line_for(std::string_view metric, std::string_view label, const std::string& value, double number,
                     const std::string& more = "") {
  char digits[320];  // the largest double has 309
  char* const end = std::to_chars(std::begin(digits), std::end(digits), number, std::chars_format::fixed).ptr;
  return std::string(metric) + "{" + std::string(label) + "=\"" + with_backslashes(value, "\\\"") + "\"" + more + "} " +
         std::string(digits, end) + "\n";
}

std::string text_of(const Samples& samples) {
  std::string text;
  for (const auto& [name, type, label, help] : kMetrics) {
    if (samples.at(name).empty()) continue;
    text += heading(name, type, help);
    for (const auto& [value, number] : samples.at(name)) text += line_for(name, label, value, number);
  }
  return text;
}

// Of the locks for which one is kept.
std::string histograms_text(const std::string& metric, std::string_view help,
                            const std::map<lock::LockName, lock::Totals>& totals,
                            lock::Histogram lock::Totals::* member) {
  std::string text;
  for (const auto& [name, total] : totals) {
    const auto& [counts, sum] = total.*member;
    const std::string label = shown_label(name.text());
    long long count = 0;
    std::string lines;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      count += counts[i];
      const auto& limits = lock::Histogram::kLimits;
      const std::string limit = i < limits.size() ? std::to_string(limits[i]) : "+Inf";
      lines += line_for(metric + "_bucket", "name", label, static_cast<double>(count), ",le=\"" + limit + "\"");
    }
    if (count == 0) continue;
    text += lines + line_for(metric + "_sum", "name", label, seconds(milliseconds(sum))) +
            line_for(metric + "_count", "name", label, static_cast<double>(count));
  }
  return text.empty() ? "" : heading(metric, "histogram", help) + text;
}

}  // namespace

std::string prometheus_text(const std::vector<lock::Status>& states, const std::vector<lock::PastHold>& last,
                            const std::map<lock::LockName, lock::Totals>& totals,
                            const std::map<std::string, ServerState>& servers, const lock::LeftOut& left_out) {
  Samples samples;
  for (const Metric& metric : kMetrics) samples[metric.name];
  for (const lock::Status& status : states) add_state(samples, status);
  for (const lock::PastHold& hold : last) add_past(samples, hold);
  for (const auto& [name, total] : totals) {
    const std::string label = label_of(samples, name);
    samples.at("rlock_losses_total")[label] = static_cast<double>(total.losses);
    samples.at("rlock_skips_total")[label] = static_cast<double>(total.skips);
    samples.at("rlock_forced_total")[label] = static_cast<double>(total.forced);
  }
  for (const auto& [address, server] : servers) add_server(samples, address, server);
  for (const auto& [prefix, number] : left_out.of_prefix) {
    samples.at("rlock_left_out")[shown_label(prefix)] = static_cast<double>(number);
  }
  if (left_out.of_prefix.empty()) samples.at("rlock_left_out")[""] = 0;
  return text_of(samples) +
         histograms_text("rlock_wait_seconds", "How long recorded jobs waited for the lock, in seconds.", totals,
                         &lock::Totals::waited) +
         histograms_text("rlock_hold_seconds", "How long recorded jobs held the lock, in seconds.", totals,
                         &lock::Totals::held);
}

}  // namespace rlock::cli
