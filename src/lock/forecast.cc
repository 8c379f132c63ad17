// SPDX-License-Identifier: MIT
#include "lock/forecast.h"

namespace rlock::lock {
namespace {

constexpr std::size_t kFewest = 5;
constexpr long long kMostAhead = 1'000'000;  // products stay far below the largest number

// How much longer the present hold will last; none: longer than all of them.
std::optional<milliseconds> rest_of(const HolderView& holder, std::span<const milliseconds> sorted) {
  if (holder.who.ended) return holder.expires_in;
  const milliseconds so_far = holder.held_for.value_or(0ms);
  const auto longer = std::ranges::upper_bound(sorted, so_far);
  if (longer == sorted.end()) return {};
  return quantile({longer, sorted.end()}, 50) - so_far;
}

}  // namespace

milliseconds quantile(std::span<const milliseconds> sorted, std::size_t percent) {
  return sorted[(sorted.size() * percent + 99) / 100 - 1];
}

std::optional<Forecast> forecast(const HolderView& holder, const std::optional<long long>& ahead, long long slots,
                                 int taken) {
  if (holder.lasted.size() < kFewest || !holder.mode.empty()) return {};
  std::vector<milliseconds> sorted = holder.lasted;
  std::ranges::sort(sorted);
  Forecast result{.holds = sorted.size(), .median = quantile(sorted, 50), .p90 = quantile(sorted, 90)};
  const long long turns = std::clamp(ahead.value_or(0), 0LL, kMostAhead);
  if (slots > 1) {
    if (ahead) result.wait = result.median * (turns + taken) / slots;
    return result;
  }
  const auto rest = rest_of(holder, sorted);
  result.longer = !rest;
  if (rest && ahead) result.wait = *rest + result.median * turns;
  return result;
}

std::optional<Forecast> forecast(const Status& status) {
  const auto known = std::ranges::find_if(status.holders, [](const HolderView& one) { return !one.lasted.empty(); });
  const bool room = status.slots > status.taken && status.waiting == 0;
  if (status.state != Status::State::held || known == status.holders.end() || room) return {};
  const bool quorum = !status.servers.empty();  // then waiters are in no queue
  return forecast(*known, quorum ? std::nullopt : std::optional(status.waiting), status.slots);
}

}  // namespace rlock::lock
