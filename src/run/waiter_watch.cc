// SPDX-License-Identifier: MIT
#include "run/waiter_watch.h"

#include <sys/eventfd.h>

#include "base/log.h"

namespace rlock::run {
namespace {

constexpr milliseconds kExchange = 5s;

bool same(const lock::HolderInfo& one, const lock::HolderInfo& other) {
  return one.pid == other.pid && one.host == other.host && one.user == other.user;
}

}  // namespace

Result<std::unique_ptr<WaiterWatch>> WaiterWatch::start(std::vector<redis::Address> addresses,
                                                        std::span<const lock::Hold> holds) {
  std::unique_ptr<WaiterWatch> watch(new WaiterWatch(addresses, holds));
  for (UniqueFd* event : {&watch->news_, &watch->stop_}) *event = RLOCK_TRY(make_event());
  std::vector<std::string> channels;
  for (const lock::Hold& hold : holds) channels.push_back(hold.name().wanted_channel());
  const auto heard = [&self = *watch, channels](std::size_t, const redis::Message& message) {
    for (std::size_t i = 0; i < channels.size(); ++i) {
      if (message.channel.empty() || message.channel == channels[i]) self.look(i);
    }
    return true;
  };
  watch->listening_ =
      RLOCK_TRY(redis::Listener::start(std::move(addresses), channels, kExchange, display(holds), heard));
  return watch;
}

WaiterWatch::~WaiterWatch() { eventfd_write(stop_.get(), 1); }

std::vector<WaiterWatch::Found> WaiterWatch::take() {
  eventfd_t unused;
  eventfd_read(news_.get(), &unused);
  const std::lock_guard guard(mutex_);
  return std::exchange(found_, {});
}

void WaiterWatch::look(std::size_t hold) {
  const lock::Lock& lock = holds_[hold].lock;
  const Until end = Until{TimePoint::max(), stop_.get()}.at_most(kExchange);
  const auto status = servers_->inspect(lock.name, end, {.as_string = lock.layout == lock::Layout::string});
  if (!status) return log::debug(lock.name.display() + ": cannot see who waits: " + status.error().message);
  std::optional<lock::HolderInfo>& first = first_[hold];
  if (status->queue.empty()) return first.reset();
  const lock::WaiterView& waiter = status->queue.front();
  if (first && same(*first, waiter.who)) return;
  first = waiter.who;
  const std::lock_guard guard(mutex_);
  found_.push_back({hold, waiter});
  eventfd_write(news_.get(), 1);
}

}  // namespace rlock::run
