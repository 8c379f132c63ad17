// SPDX-License-Identifier: MIT
#include "run/listener.h"

#include <sys/eventfd.h>

#include <utility>

#include "base/log.h"
#include "redis/subscriber.h"

namespace rlock::run {
namespace {

constexpr milliseconds kConnectTime = 5s, kPause = 1s;

// Anybody who may publish can send what no subscriber can read: that is over with the connection.
bool may_pass(const Error& error) {
  return error.code != Error::Code::interrupted && error.code != Error::Code::denied;
}

}  // namespace

Listener::Listener(std::vector<redis::Address> addresses, std::span<const lock::Hold> holds)
    : addresses_(std::move(addresses)), holds_(holds.begin(), holds.end()) {}

Result<std::unique_ptr<Listener>> Listener::start(std::vector<redis::Address> addresses,
                                                  std::span<const lock::Hold> holds) {
  std::unique_ptr<Listener> listener(new Listener(std::move(addresses), holds));
  listener->asked_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  listener->stop_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!listener->asked_ || !listener->stop_) return std::unexpected(system_error("eventfd"));
  try {
    for (const redis::Address& address : listener->addresses_) {
      listener->threads_.emplace_back([&self = *listener, &address] { self.work(address); });
    }
  } catch (const std::system_error& error) {
    return std::unexpected(system_error("cannot start the thread that listens", error.code().value()));
  }
  return listener;
}

Listener::~Listener() {
  stop();
  for (std::thread& thread : threads_) thread.join();
}

void Listener::stop() { eventfd_write(stop_.get(), 1); }

void Listener::work(const redis::Address& address) {
  while (listen(address)) {
    if (wait_for(-1, 0, Until{TimePoint::max(), stop_.get()}.at_most(kPause)) == WaitEnd::interrupted) return;
  }
}

Result<redis::Subscriber> Listener::open(const redis::Address& address, const Until& until) const {
  auto subscriber = RLOCK_TRY(
      redis::Subscriber::open(address, holds_.front().name().control_channel(), until.at_most(kConnectTime)));
  for (std::size_t i = 1; i < holds_.size(); ++i) {
    RLOCK_TRY(subscriber.also(holds_[i].name().control_channel(), until.at_most(kConnectTime)));
  }
  return subscriber;
}

bool Listener::listen(const redis::Address& address) {
  const Until forever{TimePoint::max(), stop_.get()};
  auto subscriber = open(address, forever);
  if (!subscriber) {
    log::debug(display(holds_) + ": cannot listen to requests: " + subscriber.error().message);
    return may_pass(subscriber.error());
  }
  for (std::size_t refused = 0;;) {
    const auto message = subscriber->wait(forever);
    // One channel of several that is refused: the others are listened to.
    if (!message && message.error().code == Error::Code::denied && ++refused < holds_.size()) continue;
    if (!message) return may_pass(message.error());
    auto asked = *message ? lock::asked_to_stop(**message, holds_) : std::nullopt;
    if (!asked) continue;
    take(*std::move(asked));
    return false;
  }
}

void Listener::take(lock::Asked asked) {
  if (taken_.test_and_set()) return;
  by_ = std::move(asked.by);
  which_ = asked.which;
  is_asked_ = true;
  eventfd_write(asked_.get(), 1);
}

}  // namespace rlock::run
