// SPDX-License-Identifier: MIT
#include "lock/report.h"

#include <array>

namespace rlock::lock {
namespace {

using Holds = std::span<const PastHold>;

// REQUIRES for all of these: holds of one lock, in the order in which they began, which is known.

int held_percent(Holds holds) {
  milliseconds held{}, end = *holds.front().since();
  for (const PastHold& hold : holds) {
    held += std::max(hold.ended - std::max(*hold.since(), end), 0ms);
    end = std::max(end, hold.ended);
  }
  const milliseconds all = end - *holds.front().since();
  return all > 0ms ? static_cast<int>(100 * held / all) : 100;
}

// Those that waited, by when somebody began or ended to wait: how many there are from then on, and for how long they
// all have waited until then.
class Waits {
 public:
  explicit Waits(Holds holds) {
    std::vector<std::pair<milliseconds, int>> changes;  // who leaves, leaves before another one comes
    for (const PastHold& hold : holds) {
      // A grant at once takes an exchange with the server as well.
      if (hold.waited.value_or(0ms) < 100ms) continue;
      changes.emplace_back(*hold.since() - *hold.waited, 1);
      changes.emplace_back(*hold.since(), -1);
    }
    std::ranges::sort(changes);
    Step last{};
    for (const auto& [when, change] : changes) {
      last = {when, last.waiting + change, last.waited + last.waiting * (when - last.when)};
      longest_ = std::max(longest_, last.waiting);
      steps_.push_back(last);
    }
  }

  long long longest() const { return longest_; }
  milliseconds between(milliseconds begin, milliseconds end) const { return until(end) - until(begin); }

 private:
  struct Step {
    milliseconds when{};
    long long waiting = 0;
    milliseconds waited{};
  };

  milliseconds until(milliseconds when) const {
    const auto next = std::ranges::upper_bound(steps_, when, {}, &Step::when);
    if (next == steps_.begin()) return 0ms;
    const Step& step = *std::prev(next);
    return step.waited + step.waiting * (when - step.when);
  }

  std::vector<Step> steps_;
  long long longest_ = 0;
};

std::vector<Cause> causes_of(Holds holds, const Waits& waits) {
  constexpr milliseconds kMost = 1'000'000h;  // sums of impossible times do not overflow
  std::map<std::array<std::string, 3>, Cause> causes;
  for (const PastHold& hold : holds) {
    const milliseconds waited = waits.between(*hold.since(), hold.ended);
    if (waited == 0ms) continue;
    Cause& cause =
        causes.try_emplace({hold.who.user, hold.who.host, hold.who.command}, Cause{.who = hold.who}).first->second;
    ++cause.holds;
    cause.waited_for = std::min(cause.waited_for + std::min(waited, kMost), kMost);
  }
  std::vector<Cause> sorted;
  for (auto& [key, cause] : causes) sorted.push_back(std::move(cause));
  std::ranges::stable_sort(sorted, std::greater{}, &Cause::waited_for);
  return sorted;
}

Report report_on_one(const LockName& name, std::vector<PastHold> holds) {
  Report report{.name = name, .runs = holds.size()};
  std::vector<milliseconds> waited, held;
  for (const PastHold& hold : holds) {
    if (!hold.fine()) ++report.failed;
    if (hold.waited) waited.push_back(*hold.waited);
    if (hold.held) held.push_back(*hold.held);
  }
  report.waited = Spread::of(std::move(waited));
  report.held = Spread::of(std::move(held));
  std::erase_if(holds, [](const PastHold& hold) { return !hold.held; });
  if (holds.empty()) return report;
  std::ranges::stable_sort(holds, {}, &PastHold::since);
  report.held_percent = held_percent(holds);
  const Waits waits(holds);
  report.longest_queue = static_cast<std::size_t>(waits.longest());
  report.causes = causes_of(holds, waits);
  return report;
}

}  // namespace

std::optional<Spread> Spread::of(std::vector<milliseconds> spans) {
  if (spans.empty()) return {};
  std::ranges::sort(spans);
  Spread spread{.median = quantile(spans, 50), .p95 = quantile(spans, 95)};
  for (const milliseconds span : spans) spread.total += span;
  return spread;
}

std::vector<Report> report_on(std::vector<PastHold> holds) {
  std::map<LockName, std::vector<PastHold>> by_name;
  for (PastHold& hold : holds) by_name[hold.name].push_back(std::move(hold));
  std::vector<Report> reports;
  for (auto& [name, its] : by_name) reports.push_back(report_on_one(name, std::move(its)));
  return reports;
}

}  // namespace rlock::lock
