// SPDX-License-Identifier: MIT
#include "run/listener.h"

#include <sys/eventfd.h>

#include <utility>

namespace rlock::run {

Result<std::unique_ptr<Listener>> Listener::start(std::vector<redis::Address> addresses,
                                                  std::span<const lock::Hold> holds) {
  std::unique_ptr<Listener> listener(new Listener(holds));
  listener->asked_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!listener->asked_) return std::unexpected(system_error("eventfd"));
  std::vector<std::string> channels;
  for (const lock::Hold& hold : holds) channels.push_back(hold.name().control_channel());
  listener->threads_ = RLOCK_TRY(redis::Listener::start(
      std::move(addresses), std::move(channels), 5s, lock::display(holds),
      [&self = *listener](std::size_t, const redis::Message& message) { return self.take(message); }));
  return listener;
}

bool Listener::take(const redis::Message& message) {
  auto asked = lock::asked_to_stop(message, holds_);
  if (!asked) return true;
  if (taken_.test_and_set()) return false;
  by_ = std::move(asked->by);
  which_ = asked->which;
  is_asked_ = true;
  eventfd_write(asked_.get(), 1);
  return false;
}

}  // namespace rlock::run
