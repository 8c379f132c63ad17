// SPDX-License-Identifier: MIT
#include "run/waiter_watch.h"

#include <poll.h>

#include "base/log.h"

namespace rlock::run {
namespace {

constexpr milliseconds kLooksApart = 100ms;

// Two may have the same host, user and pid, in containers. Of one, the times differ by what the answers take.
bool same(const std::pair<lock::HolderInfo, TimePoint>& one, const lock::HolderInfo& who, TimePoint since) {
  return one.first.pid == who.pid && one.first.host == who.host && one.first.user == who.user &&
         std::chrono::abs(one.second - since) < kLooksApart;
}

}  // namespace

Result<std::unique_ptr<WaiterWatch>> WaiterWatch::start(std::vector<redis::Address> addresses, milliseconds exchange,
                                                        std::span<const lock::Hold> holds) {
  std::unique_ptr<WaiterWatch> watch(new WaiterWatch(addresses, exchange, holds));
  for (UniqueFd* event : {&watch->calls_, &watch->news_, &watch->stop_}) *event = RLOCK_TRY(make_event());
  std::vector<std::string> channels;
  for (const lock::Hold& hold : holds) channels.push_back(hold.name().wanted_channel());
  const auto heard = [&self = *watch](std::size_t, const redis::Message&) {
    set_event(self.calls_);
    return true;
  };
  watch->listening_ =
      RLOCK_TRY(redis::Listener::start({std::move(addresses), channels, exchange, display(holds), heard}));
  try {
    watch->looking_ = std::thread([&self = *watch] { self.look_after_calls(); });
  } catch (const std::system_error& error) {
    return std::unexpected(system_error("cannot start a thread that watches for waiters", error.code().value()));
  }
  return watch;
}

WaiterWatch::~WaiterWatch() {
  set_event(stop_);
  listening_.reset();
  if (looking_.joinable()) looking_.join();
}

std::vector<WaiterWatch::Found> WaiterWatch::take() {
  clear_event(news_);
  std::vector<Found> found;
  const std::lock_guard guard(mutex_);
  for (std::size_t i = 0; i < found_.size(); ++i) {
    if (auto waiter = std::exchange(found_[i], {})) found.push_back({i, *std::move(waiter)});
  }
  return found;
}

void WaiterWatch::look_after_calls() {
  const Until forever{TimePoint::max(), stop_.get()};
  while (wait_for(calls_.get(), POLLIN, forever) == WaitEnd::ready) {
    clear_event(calls_);
    for (std::size_t i = 0; i < holds_.size() && wait_for(-1, 0, forever.at_most(0ms)) == WaitEnd::deadline; ++i)
      look(i);
    if (wait_for(-1, 0, forever.at_most(kLooksApart)) == WaitEnd::interrupted) return;
  }
}

void WaiterWatch::look(std::size_t hold) {
  const lock::Lock& lock = holds_[hold].lock;
  const Until end = Until{TimePoint::max(), stop_.get()}.at_most(exchange_);
  const auto status = servers_->inspect(lock.name, end, {.as_string = lock.layout == lock::Layout::string});
  if (!status) return log::debug(lock.name.display() + ": cannot look at the queue: " + status.error().message);
  if (status->queue.empty()) return first_[hold].reset();
  const lock::WaiterView& waiter = status->queue.front();
  const TimePoint since = BootClock::now() - waiter.for_so_long;
  if (first_[hold] && same(*first_[hold], waiter.who, since)) return;
  first_[hold] = {waiter.who, since};
  const std::lock_guard guard(mutex_);
  found_[hold] = waiter;
  set_event(news_);
}

}  // namespace rlock::run
