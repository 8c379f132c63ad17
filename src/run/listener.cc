// SPDX-License-Identifier: MIT
#include "run/listener.h"

#include <sys/eventfd.h>

#include "base/log.h"
#include "redis/subscriber.h"

namespace rlock::run {
namespace {

constexpr milliseconds kConnectTime = 5s, kPause = 1s;

}  // namespace

Listener::Listener(const redis::Endpoint& endpoint, const lock::Hold& hold)
    : endpoint_(endpoint), name_(hold.name), owner_(hold.owner) {}

Result<std::unique_ptr<Listener>> Listener::start(const redis::Endpoint& endpoint, const lock::Hold& hold,
                                                  milliseconds delay) {
  std::unique_ptr<Listener> listener(new Listener(endpoint, hold));
  listener->asked_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  listener->stop_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!listener->asked_ || !listener->stop_) return std::unexpected(system_error("eventfd"));
  try {
    listener->thread_ = std::thread([&self = *listener, delay] { self.work(delay); });
  } catch (const std::system_error& error) {
    return std::unexpected(system_error("cannot start the thread that listens", error.code().value()));
  }
  return listener;
}

void Listener::stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void Listener::work(milliseconds delay) {
  do {
    if (wait_for(-1, 0, Until{TimePoint::max(), stop_.get()}.at_most(delay)) == WaitEnd::interrupted) return;
    delay = kPause;
  } while (listen());
}

bool Listener::listen() {
  const Until forever{TimePoint::max(), stop_.get()};
  auto subscriber = redis::Subscriber::open(endpoint_, name_.control_channel(), forever.at_most(kConnectTime));
  if (!subscriber) {
    log::debug(name_.display() + ": cannot listen to requests: " + subscriber.error().message);
    return subscriber.error().code == Error::Code::unavailable;
  }
  for (;;) {
    const auto message = subscriber->wait(forever);
    if (!message) return message.error().code == Error::Code::unavailable;
    const auto by = lock::asked_to_stop_by(message->value_or(""), owner_);
    if (!by) continue;
    by_ = *by;
    is_asked_ = true;
    eventfd_write(asked_.get(), 1);
    return false;
  }
}

}  // namespace rlock::run
