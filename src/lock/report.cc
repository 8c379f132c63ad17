// SPDX-License-Identifier: MIT
#include "lock/report.h"

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

std::size_t longest_queue(Holds holds) {
  std::vector<std::pair<milliseconds, int>> steps;  // who leaves, leaves before another one comes
  for (const PastHold& hold : holds) {
    if (hold.waited.value_or(0ms) == 0ms) continue;
    steps.emplace_back(*hold.since() - *hold.waited, 1);
    steps.emplace_back(*hold.since(), -1);
  }
  std::ranges::sort(steps);
  int waiting = 0, most = 0;
  for (const auto& [when, step] : steps) most = std::max(most, waiting += step);
  return static_cast<std::size_t>(most);
}

std::vector<Cause> causes_of(Holds holds) {
  std::vector<milliseconds> waited_for(holds.size()), ends;  // ends: of this hold and all before it, the last one
  for (std::size_t i = 0; i < holds.size(); ++i) {
    const milliseconds granted = *holds[i].since(), began = granted - holds[i].waited.value_or(0ms);
    for (std::size_t j = i; j-- > 0 && ends[j] > began;) {
      const milliseconds both = std::min(holds[j].ended, granted) - std::max(*holds[j].since(), began);
      waited_for[j] += std::max(both, 0ms);
    }
    ends.push_back(std::max(holds[i].ended, ends.empty() ? holds[i].ended : ends.back()));
  }
  std::map<std::array<std::string, 3>, Cause> causes;
  for (std::size_t i = 0; i < holds.size(); ++i) {
    if (waited_for[i] == 0ms) continue;
    const HolderInfo& who = holds[i].who;
    Cause& cause = causes.try_emplace({who.user, who.host, who.command}, Cause{.who = who}).first->second;
    ++cause.holds;
    cause.waited_for += waited_for[i];
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
  report.longest_queue = longest_queue(holds);
  report.causes = causes_of(holds);
  return report;
}

}  // namespace

Spread Spread::of(std::vector<milliseconds> spans) {
  if (spans.empty()) return {};
  std::ranges::sort(spans);
  Spread spread{.count = spans.size(), .median = quantile(spans, 50), .p95 = quantile(spans, 95)};
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
