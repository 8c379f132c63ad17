// SPDX-License-Identifier: MIT
#include "lock/wait.h"

#include <algorithm>

#include "base/log.h"
#include "base/random.h"
#include "redis/subscriber.h"

namespace rlock::lock {
namespace {

constexpr milliseconds kLongestPoll = 5s;

// The channel of one lock, listened to as well as the server allows.
class Wakeups {
 public:
  Wakeups(const redis::Endpoint& endpoint, std::string channel) : endpoint_(endpoint), channel_(std::move(channel)) {}

  // True: listening has just begun, so a release may have been missed until now.
  // Errors: interrupted. Others only mean that the lock has to be polled.
  Result<bool> begin(const Until& until) {
    if (subscriber_ || refused_) return false;
    auto opened = redis::Subscriber::open(endpoint_, channel_, until);
    if (opened) {
      subscriber_.emplace(std::move(*opened));
      return true;
    }
    if (opened.error().code == Error::Code::interrupted) return std::unexpected(std::move(opened).error());
    refused_ = opened.error().code == Error::Code::denied;
    if (refused_) log::warning(opened.error().message + "; releases are noticed late, by asking every 5s");
    return false;
  }

  // Waits for a message or the end of `until`. Errors: interrupted.
  Result<void> wait(const Until& until) {
    if (subscriber_) {
      auto heard = subscriber_->wait(until);
      if (heard) return {};
      if (heard.error().code == Error::Code::interrupted) return std::unexpected(std::move(heard).error());
      log::debug(heard.error().message + "; listening again");
      subscriber_.reset();
      // Not at once: a server that cuts every listener off would keep all of them busy.
      return pause(until.at_most(100ms + milliseconds(random_below(100))));
    }
    return pause(until);
  }

 private:
  static Result<void> pause(const Until& until) {
    if (wait_for(-1, 0, until) == WaitEnd::interrupted) return fail(Error::Code::interrupted, "interrupted");
    return {};
  }

  redis::Endpoint endpoint_;
  std::string channel_;
  std::optional<redis::Subscriber> subscriber_;
  bool refused_ = false;
};

// The lease has ended when its last millisecond is over; a little later for some, so that not all try at once.
milliseconds next_look(const std::optional<milliseconds>& expires_in) {
  const auto jitter = milliseconds(random_below(20));
  return std::min(expires_in.value_or(kLongestPoll) + 1ms, kLongestPoll) + jitter;
}

}  // namespace

Result<Acquired> acquire_or_wait(redis::Client& client, AcquireRequest request, const Patience& patience,
                                 const std::function<void(const Acquired&)>& on_held) {
  const auto exchange = [&] { return Until{TimePoint::max(), patience.interrupt}.at_most(patience.exchange); };
  Until wait_end{TimePoint::max(), patience.interrupt};
  if (patience.limit) wait_end = wait_end.at_most(*patience.limit);

  Wakeups wakeups(client.endpoint(), request.name.channel());
  std::optional<TimePoint> last_contact;
  for (;;) {
    request.owner = OwnerId::fresh();
    auto acquired = acquire(client, request, exchange());
    const bool outage = !acquired && acquired.error().code == Error::Code::unavailable && last_contact &&
                        BootClock::now() < *last_contact + request.lease;
    if (!acquired && !outage) return acquired;
    if (acquired) {
      if (acquired->outcome != Acquired::Outcome::held) return acquired;
      last_contact = BootClock::now();
    } else {
      log::debug(acquired.error().message + "; still waiting");
    }
    if (wait_end.over()) return acquired;

    milliseconds look_again = 1s;
    if (acquired) {
      on_held(*acquired);
      if (RLOCK_TRY(wakeups.begin(exchange()))) continue;
      look_again = next_look(acquired->expires_in);
    }
    RLOCK_TRY(wakeups.wait(wait_end.at_most(look_again)));
  }
}

}  // namespace rlock::lock
