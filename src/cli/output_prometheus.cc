// SPDX-License-Identifier: MIT
#include "cli/output_prometheus.h"

#include <cstdio>
#include <optional>
#include <string_view>

#include "cli/exit_status.h"

namespace rlock::cli {
namespace {

// All that is known of one lock; none: that measure has no line.
struct Measures {
  std::optional<double> held, waiters, held_seconds, last_status, last_duration, last_end;
  // From 0 on for each: Prometheus sees no increase in a counter that comes with its first 1.
  double losses = 0, skips = 0, forced = 0;
};

double seconds(milliseconds time) { return static_cast<double>(time.count()) / 1000; }

// As the shell has seen it; none where nobody knows.
std::optional<double> status_of(const lock::PastHold& hold) {
  if (hold.lost()) return kLost;
  if (hold.end == "exited" && hold.value) return *hold.value;
  if (hold.end == "signalled" && hold.value) return 128 + *hold.value;
  if (hold.end == "timed-out") return kTimedOut;
  if (hold.end == "hook-failed") return kConfig;
  if (hold.end == "not-found") return kNotFound;
  if (hold.end == "not-executable") return kNotExecutable;
  if (hold.end == "error") return kSystem;
  if (hold.outcome == lock::PastHold::Outcome::forced) return kLost;
  return {};
}

// The value of a label: backslash and quote have a meaning in it, and no name that is shown holds a newline.
std::string label(const lock::LockName& name) {
  std::string out;
  for (const char c : name.display()) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

std::string number(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

using All = std::map<lock::LockName, Measures>;

void add(std::string& text, const All& all, std::string_view name, std::string_view type, std::string_view help,
         std::optional<double> (*measure)(const Measures&)) {
  std::string lines;
  for (const auto& [lock, measures] : all) {
    const auto value = measure(measures);
    if (value) lines += std::string(name) + "{name=\"" + label(lock) + "\"} " + number(*value) + "\n";
  }
  if (lines.empty()) return;
  text += "# HELP " + std::string(name) + " " + std::string(help) + "\n# TYPE " + std::string(name) + " " +
          std::string(type) + "\n" + lines;
}

}  // namespace

std::string prometheus_text(const std::vector<lock::Status>& states, const std::vector<lock::PastHold>& last,
                            const std::map<lock::LockName, lock::Totals>& totals) {
  All all;
  for (const lock::Status& status : states) {
    Measures& one = all[status.name()];
    one.held = status.state == lock::Status::State::held ? 1 : 0;
    one.waiters = static_cast<double>(status.waiting);
    const lock::HolderView* holder = status.oldest_holder();
    if (holder && holder->held_for) one.held_seconds = seconds(*holder->held_for);
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
    one.losses = static_cast<double>(total.losses);
    one.skips = static_cast<double>(total.skips);
    one.forced = static_cast<double>(total.forced);
  }
  using M = Measures;
  using Value = std::optional<double>;
  std::string text;
  add(text, all, "rlock_held", "gauge", "1 if the lock is held, else 0.", [](const M& m) -> Value { return m.held; });
  add(text, all, "rlock_held_seconds", "gauge", "How long its holder has had it; of several, the longest time.",
      [](const M& m) -> Value { return m.held_seconds; });
  add(text, all, "rlock_waiters", "gauge", "How many wait for it.", [](const M& m) -> Value { return m.waiters; });
  add(text, all, "rlock_last_status", "gauge", "The exit status of the last job that was written down.",
      [](const M& m) -> Value { return m.last_status; });
  add(text, all, "rlock_last_duration_seconds", "gauge", "How long that job held the lock.",
      [](const M& m) -> Value { return m.last_duration; });
  add(text, all, "rlock_last_end_timestamp_seconds", "gauge", "When that hold ended.",
      [](const M& m) -> Value { return m.last_end; });
  add(text, all, "rlock_losses_total", "counter", "How often the lock was lost while a job ran.",
      [](const M& m) -> Value { return m.losses; });
  add(text, all, "rlock_skips_total", "counter", "How often a job did not get the lock.",
      [](const M& m) -> Value { return m.skips; });
  add(text, all, "rlock_forced_total", "counter", "How often the lock was taken away.",
      [](const M& m) -> Value { return m.forced; });
  return text;
}

}  // namespace rlock::cli
