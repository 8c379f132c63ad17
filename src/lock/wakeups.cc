// SPDX-License-Identifier: MIT
#include "lock/wakeups.h"

#include <sys/eventfd.h>

#include <system_error>
#include <utility>

#include "base/log.h"
#include "redis/subscriber.h"

namespace rlock::lock {
namespace {

constexpr milliseconds kConnectTime = 2s, kPause = 1s;
constexpr milliseconds kCommandTime = 10s;  // of a password command

}  // namespace

Wakeups::Wakeups(std::vector<redis::Address> addresses, const std::vector<Lock>& locks)
    : addresses_(std::move(addresses)),
      heard_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      news_(addresses_.size()) {
  for (const Lock& lock : locks) channels_.push_back(lock.channel());
  try {
    for (std::size_t i = 0; i < addresses_.size(); ++i) threads_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error& error) {
    log::debug(std::string("cannot start a thread that listens: ") + error.what());
  }
}

Wakeups::~Wakeups() {
  eventfd_write(stop_.get(), 1);
  for (std::thread& thread : threads_) thread.join();
}

std::vector<bool> Wakeups::take() {
  eventfd_t unused;
  eventfd_read(heard_.get(), &unused);
  std::vector<bool> where;
  for (std::atomic<bool>& one : news_) where.push_back(one.exchange(false));
  return where;
}

void Wakeups::work(std::size_t which) {
  while (listen(which)) {
    if (wait_for(-1, 0, Until{TimePoint::max(), stop_.get()}.at_most(kPause)) == WaitEnd::interrupted) return;
  }
}

bool Wakeups::listen(std::size_t which) {
  const redis::Address& address = addresses_[which];
  const Until forever{TimePoint::max(), stop_.get()};
  const auto may_pass = [](const Error& error) {
    return error.code != Error::Code::interrupted && error.code != Error::Code::denied;
  };
  const auto& source = address.server.password_source;
  const milliseconds limit = source && source->starts_processes ? kCommandTime : kConnectTime;
  auto subscriber = redis::Subscriber::open(address, channels_.front(), forever.at_most(limit));
  for (std::size_t i = 1; subscriber && i < channels_.size(); ++i) {
    if (auto also = subscriber->also(channels_[i], forever.at_most(kConnectTime)); !also) return may_pass(also.error());
  }
  if (!subscriber) {
    log::debug("cannot listen to releases: " + subscriber.error().message);
    return may_pass(subscriber.error());
  }
  for (;;) {
    const auto message = subscriber->wait(forever);
    if (!message) return may_pass(message.error());
    news_[which] = true;
    eventfd_write(heard_.get(), 1);
  }
}

}  // namespace rlock::lock
