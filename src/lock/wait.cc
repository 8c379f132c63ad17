// SPDX-License-Identifier: MIT
#include "lock/wait.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/duration.h"
#include "base/log.h"
#include "base/random.h"
#include "lua/timing.h"
#include "redis/subscriber.h"

namespace rlock::lock {
namespace {

using lua::kLongestPoll, lua::kLongestSilence;
constexpr milliseconds kListenAgain = 500ms;
// Where foreign clients wait, too: a start that makes up for their being slower than we are.
constexpr milliseconds kHeadStart = 100ms;
static_assert(kHeadStart > lua::kOthersTurn);
// The waiter in front may have died before the holder did, and nobody would tell: look some time after a lease
// that is not renewed.
constexpr milliseconds kAfterExpiry = 5s, kAfterExpirySpread = 2s;

// The holder's lease has ended when its last millisecond is over.
milliseconds expiry(const std::optional<milliseconds>& ttl) {
  return std::min(ttl.value_or(kLongestPoll), kLongestPoll - 1ms) + 1ms;
}

// A little sooner for some, so that not all come at once.
milliseconds jittered(milliseconds span) {
  return span - milliseconds(random_below(static_cast<std::uint64_t>(span.count() / 10 + 1)));
}

// Tells a waiter that it is its turn, as well as the server allows.
class Wakeups {
 public:
  Wakeups(const redis::Endpoint& endpoint, const Lock& lock, const OwnerId& waiter, const Patience& patience,
          std::function<void()> at_front, std::function<TimePoint()> meanwhile)
      : endpoint_(endpoint),
        own_(lock.name.grants() + waiter.text()),
        releases_(lock.channel()),
        patience_(patience),
        at_front_(std::move(at_front)),
        meanwhile_(std::move(meanwhile)) {}

  bool listening() const { return subscriber_.has_value(); }
  bool refused() const { return refused_; }
  void end() { subscriber_.reset(); }

  // Errors: interrupted. Others only mean that the lock has to be polled.
  Result<void> begin(const Until& until) {
    if (subscriber_ || refused_) return {};
    auto opened = redis::Subscriber::open(endpoint_, own_, until);
    for (const std::string& channel : patience_.other_channels) {
      if (!opened) break;
      if (auto asked = opened->also(channel, until); !asked) opened = std::unexpected(std::move(asked).error());
    }
    if (opened) {
      subscriber_.emplace(std::move(*opened));
      hears_releases_ = false;
      other_channel_.clear();
      return {};
    }
    if (opened.error().code == Error::Code::interrupted) return std::unexpected(std::move(opened).error());
    refused_ = opened.error().code == Error::Code::denied;
    if (refused_) log::warning(opened.error().message + "; not in the queue: the lock is asked for every 5s");
    return {};
  }

  // The first one in the queue listens to the releases of other programs. True: it has just begun, so that one may
  // have been missed until now. Errors: interrupted.
  Result<bool> hear_releases(const Until& until) {
    if (!subscriber_ || hears_releases_) return false;
    hears_releases_ = true;
    if (auto asked = subscriber_->also(releases_, until); !asked) {
      RLOCK_TRY(lost(std::move(asked).error(), until));
      return false;
    }
    return true;
  }

  // The same for a channel of the queue of another program, where we are told of our turn there.
  Result<bool> hear_turn(const std::string& channel, const Until& until) {
    if (!subscriber_ || channel.empty() || channel == other_channel_) return false;
    other_channel_ = channel;
    if (auto asked = subscriber_->also(channel, until); !asked) {
      RLOCK_TRY(lost(std::move(asked).error(), until));
      return false;
    }
    return true;
  }

  enum class Heard {
    look,     // there may be something to look for
    granted,  // the lock is ours; nobody listens any more
  };

  // Waits until there is something to look for. Errors: interrupted.
  Result<Heard> wait(Until until) {
    if (!subscriber_) {
      do {
        RLOCK_TRY(pause(until.at_most(meanwhile_())));
      } while (!until.over());
      return Heard::look;
    }
    bool others_first = false;
    for (;;) {
      auto message = subscriber_->wait(until.at_most(meanwhile_()));
      if (!message) {
        if (message.error().code == Error::Code::denied) {
          const std::string& why = message.error().message;
          if (!std::exchange(warned_, true)) {
            log::warning(why + "; releases by other programs are noticed late, by asking every 5s");
          }
          continue;
        }
        RLOCK_TRY(lost(std::move(message).error(), until));
        return Heard::look;
      }
      if (!*message && !until.over()) continue;
      if (!*message) return Heard::look;
      const std::string& heard = (*message)->text;
      if (heard == "granted") {
        // Before the lock is taken: if a release found us still there, we would look like a foreign listener to it.
        subscriber_.reset();
        return Heard::granted;
      }
      if (heard == "free") {
        others_first = true;
        until = until.at_most(kHeadStart);
        continue;
      }
      if (others_first && number(heard)) continue;  // the same release, on the lock's channel
      if (patience_.on_message) RLOCK_TRY(patience_.on_message(**message));
      if (!heard.starts_with("first ")) {
        // At the front, and a release may have been missed: look.
        if (heard == "front") static_cast<void>(RLOCK_TRY(hear_releases(until)));
        return Heard::look;
      }
      // At the front; nothing has been missed, because the lock has changed hands just now.
      at_front_();
      static_cast<void>(RLOCK_TRY(hear_releases(until)));
      if (!subscriber_) return Heard::look;
      until = until.at_most(expiry(number(heard.substr(6))));
    }
  }

 private:
  static std::optional<milliseconds> number(const std::string& text) {
    long long value = -1;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value < 0 ? std::nullopt : std::optional(milliseconds(value));
  }

  Result<void> lost(Error error, const Until& until) {
    if (error.code == Error::Code::interrupted) return std::unexpected(std::move(error));
    log::debug(error.message + "; listening again");
    subscriber_.reset();
    // Not at once: a server that cuts every listener off would keep all of them busy.
    return pause(until.at_most(100ms + milliseconds(random_below(100))));
  }

  static Result<void> pause(const Until& until) {
    if (wait_for(-1, 0, until) == WaitEnd::interrupted) return fail(Error::Code::interrupted, "interrupted");
    return {};
  }

  redis::Endpoint endpoint_;
  std::string own_, releases_;
  const Patience& patience_;
  std::function<void()> at_front_;
  std::function<TimePoint()> meanwhile_;
  std::optional<redis::Subscriber> subscriber_;
  bool hears_releases_ = false;
  std::string other_channel_;  // that is listened to as well
  bool refused_ = false;
  bool warned_ = false;
};

class Waiter {
 public:
  Waiter(redis::Client& client, AcquireRequest request, const Patience& patience, const OnHeld& on_held)
      : client_(client), request_(std::move(request)), patience_(patience), on_held_(on_held) {}

  Result<Acquired> run() {
    if (patience_.limit) end_ = end_.at_most(*patience_.limit);
    auto acquired = acquire(client_, request_, exchange());
    if (acquired && acquired->outcome == Acquired::Outcome::held) {
      if (!end_.over()) {
        acquired = wait();
      } else if (auto fine = on_held_(*acquired); !fine) {
        acquired = std::unexpected(std::move(fine).error());
      }
    }
    const bool granted = acquired && acquired->outcome == Acquired::Outcome::granted;
    const bool unknown = !acquired && acquired.error().maybe_executed;
    if (!granted && (queued_ || unknown)) leave();
    return acquired;
  }

 private:
  Result<Acquired> wait() {
    Wakeups wakeups(
        client_.endpoint(), lock(), request_.owner, patience_, [&] { at_front(wakeups); }, [&] { return meanwhile(); });
    Queueing queueing = patience_.queueing;
    TimePoint last_contact = BootClock::now();
    auto heard = Wakeups::Heard::look;
    for (;;) {
      if (heard == Wakeups::Heard::look) RLOCK_TRY(wakeups.begin(exchange()));
      // A waiter that cannot be told of its turn does not stand in the queue.
      request_.queueing = wakeups.listening() ? std::optional(queueing) : std::nullopt;
      queued_ = queued_ || request_.queueing;
      auto acquired = acquire(client_, request_, exchange());
      if (!acquired) {
        const bool outage = acquired.error().code == Error::Code::unavailable;
        const TimePoint give_up = last_contact + request_.lease;
        if (!outage || end_.over() || BootClock::now() >= give_up) return acquired;
        say_away(acquired.error(), give_up);
        heard = RLOCK_TRY(wakeups.wait(end_.at_most(1s)));
        continue;
      }
      if (std::exchange(away_, false)) log::warning(request_.name.display() + ": the server answers again");
      if (acquired->outcome != Acquired::Outcome::held) return acquired;
      last_contact = BootClock::now();
      if (!acquired->place.empty()) queueing.place = acquired->place;
      RLOCK_TRY(on_held_(*acquired));
      looked_ = true;
      if (end_.over()) return acquired;
      if (heard == Wakeups::Heard::granted) {  // too late for it
        heard = Wakeups::Heard::look;
        continue;
      }
      const bool first = acquired->ahead == 0;
      // Both: what was missed on either is found by one look.
      const bool hears_more = first && RLOCK_TRY(wakeups.hear_releases(exchange()));
      const bool hears_turn = first && RLOCK_TRY(wakeups.hear_turn(acquired->other_channel, exchange()));
      if (hears_more || hears_turn) continue;
      if (first) at_front(wakeups);
      milliseconds look_again = std::min(next_look(*acquired), patience_.longest_look);
      // Nobody can tell us anything: listen again soon.
      if (!wakeups.listening() && !wakeups.refused()) look_again = std::min(look_again, kListenAgain);
      heard = RLOCK_TRY(wakeups.wait(end_.at_most(look_again)));
    }
  }

  // Once for each outage: who waits for a holder that is slow waits for something else than we do.
  void say_away(const Error& error, TimePoint give_up) {
    if (std::exchange(away_, true)) return;
    log::warning(request_.name.display() + ": " + error.message + "; still waiting, for " +
                 rough_duration(until(give_up)) + " at most if it does not answer");
  }

  TimePoint meanwhile() const { return looked_ && patience_.meanwhile ? patience_.meanwhile() : TimePoint::max(); }

  void at_front(Wakeups& wakeups) {
    if (!patience_.at_front) return;
    patience_.at_front({lock(), request_.owner, request_.hold(), "", request_.lease, {}}, [&] { wakeups.end(); });
  }

  static milliseconds next_look(const Acquired& found) {
    if (found.ahead == 0) return expiry(found.expires_in);
    if (!found.ahead) return expiry(found.expires_in) + milliseconds(random_below(20));
    if (found.ahead == 1) return kLongestPoll;
    const milliseconds spread(random_below(static_cast<std::uint64_t>(kAfterExpirySpread.count())));
    const milliseconds expired = found.expires_in.value_or(kLongestSilence) + kAfterExpiry + spread;
    // No further away than that: the number is not ours, and could overflow.
    const long long ahead = std::min<long long>(*found.ahead, kLongestSilence / kLongestPoll);
    return std::min(expired, jittered(std::min<milliseconds>(kLongestPoll * (ahead + 1), kLongestSilence)));
  }

  // Nothing of an attempt that was given up shall stay. Short, because somebody waits for us; if it fails, others find
  // out that nobody listens here, or a grant runs out.
  void leave() {
    const std::string hold_id = request_.hold();
    const Until soon = Until{}.at_most(500ms);
    for (const OwnerId* owner : {&request_.owner, request_.heir ? &*request_.heir : nullptr}) {
      if (!owner) continue;
      if (auto released = release(client_, lock(), *owner, hold_id, soon); !released) {
        log::debug(released.error().message);
      }
    }
  }

  Lock lock() const { return {request_.name, request_.mode.layout()}; }
  Until exchange() const { return Until{TimePoint::max(), patience_.interrupt}.at_most(patience_.exchange); }

  redis::Client& client_;
  AcquireRequest request_;
  const Patience& patience_;
  const OnHeld& on_held_;
  Until end_{TimePoint::max(), patience_.interrupt};
  bool queued_ = false;
  bool looked_ = false;  // and it was held
  bool away_ = false;    // the server; that has been said
};

}  // namespace

Result<Acquired> acquire_or_wait(redis::Client& client, AcquireRequest request, const Patience& patience,
                                 const OnHeld& on_held) {
  return Waiter(client, std::move(request), patience, on_held).run();
}

}  // namespace rlock::lock
