// SPDX-License-Identifier: MIT
#include "lock/acquire.h"

#include <algorithm>
#include <utility>

#include "base/duration.h"
#include "base/log.h"
#include "base/random.h"
#include "lock/waiter_channel.h"
#include "lua/timing.h"

namespace rlock::lock {
namespace {

using lua::kLongestPoll, lua::kLongestSilence;
constexpr milliseconds kListenAgain = 500ms;
// The waiter in front may have died before the holder did, and nobody would tell: look some time after a lease
// that is not renewed.
constexpr milliseconds kAfterExpiry = 5s, kAfterExpirySpread = 2s;
// Between two questions whether another program has deleted its string: each is twice as long as the one before.
constexpr milliseconds kFirstPause = 5ms, kLongestPause = 200ms;

// A little sooner for some, so that not all come at once.
milliseconds jittered(milliseconds span) {
  return span - milliseconds(random_below(static_cast<std::uint64_t>(span.count() / 10 + 1)));
}

class Waiter {
 public:
  Waiter(Verbs& verbs, redis::Client& client, AcquireRequest request, const WaitPolicy& policy, const OnHeld& on_held)
      : verbs_(verbs), client_(client), request_(std::move(request)), policy_(policy), on_held_(on_held) {}

  Result<Acquired> run() {
    if (policy_.limit) end_ = end_.at_most(*policy_.limit);
    auto acquired = ask();
    if (std::exchange(moved_, false)) acquired = ask();
    if (acquired && never_free(*acquired)) {
      acquired->outcome = Acquired::Outcome::immortal;
    } else if (acquired && acquired->outcome == Acquired::Outcome::held) {
      if (!end_.over()) {
        acquired = wait();
      } else if (auto fine = on_held_(*acquired); !fine) {
        acquired = std::unexpected(std::move(fine).error());
      }
    } else if (!acquired && may_come_back(acquired.error())) {
      queued_ = acquired.error().maybe_executed;
      say_away(acquired.error(), end_.deadline);
      acquired = wait();
    }
    const bool granted = acquired && acquired->outcome == Acquired::Outcome::granted;
    const bool unknown = !acquired && acquired.error().maybe_executed;
    if (!granted && (queued_ || unknown)) leave();
    return acquired;
  }

 private:
  // A grant counts only if the Sentinels, where there are any, still name its server: the same answer that a job gets
  // that begins now. The old one keeps the grant until it takes on the data of the new master: no release is sent to it,
  // as this owner id waits on at the new one.
  Result<Acquired> ask() {
    auto acquired = verbs_.acquire(request_, exchange());
    if (!acquired || acquired->outcome != Acquired::Outcome::granted) return acquired;
    using Standing = redis::Connections::Standing;
    auto standing = client_.standing(exchange());
    if (standing && (*standing == Standing::master || *standing == Standing::by_few)) return acquired;
    moved_ = standing && *standing == Standing::another;
    const std::string named = moved_ ? ": the Sentinels name another master now"
                                     : ": no more than half of the Sentinels answer, and they name another master";
    Error error = standing ? Error{Error::Code::unavailable, request_.name.display() + named}
                           : std::move(standing).error();
    error.maybe_executed = true;
    return std::unexpected(std::move(error));
  }

  Result<Acquired> wait() {
    WaiterChannel channel(
        client_.address(), lock(), request_.owner, policy_, [&] { at_front(channel); }, [&] { return meanwhile(); });
    QueueRequest queueing = policy_.queueing;
    TimePoint last_contact = BootClock::now();
    auto heard = WaiterChannel::Heard::look;
    for (;;) {
      if (heard == WaiterChannel::Heard::look) RLOCK_TRY(channel.begin(exchange()));
      // A waiter that cannot be told of its turn does not stand in the queue.
      request_.queueing = channel.listening() ? std::optional(queueing) : std::nullopt;
      queued_ = queued_ || request_.queueing;
      auto acquired = ask();
      if (std::exchange(moved_, false) && !end_.over()) {
        log::warning(acquired.error().message + "; waiting there");
        channel.end();
        last_contact = BootClock::now();
        heard = RLOCK_TRY(channel.wait(end_.at_most(kListenAgain)));
        continue;
      }
      // Renewals of other locks go to other servers of a cluster.
      const std::string answered_by = client_.server();
      if (!acquired) {
        const bool outage = acquired.error().code == Error::Code::unavailable;
        const TimePoint give_up = policy_.limit ? end_.deadline : last_contact + request_.lease;
        if (!outage || end_.over() || BootClock::now() >= give_up) return acquired;
        say_away(acquired.error(), give_up);
        heard = RLOCK_TRY(channel.wait(end_.at_most(1s)));
        continue;
      }
      if (std::exchange(away_, false)) log::warning(request_.name.display() + ": the server answers again");
      if (never_free(*acquired)) acquired->outcome = Acquired::Outcome::immortal;
      if (acquired->outcome != Acquired::Outcome::held) return acquired;
      last_contact = BootClock::now();
      if (!acquired->place.empty()) queueing.place = acquired->place;
      RLOCK_TRY(on_held_(*acquired));
      looked_ = true;
      if (end_.over()) return acquired;
      if (channel.strayed_from(answered_by)) {
        // Nobody knows which of the two is out of date.
        channel.end();
        client_.disconnect();
        heard = RLOCK_TRY(channel.wait(end_.at_most(kListenAgain)));
        continue;
      }
      const bool first = acquired->ahead == 0;
      // Both: what was missed on either is found by one look.
      const bool hears_more = first && RLOCK_TRY(channel.hear_releases(exchange()));
      const bool hears_turn = first && RLOCK_TRY(hear_turn(channel, *acquired));
      if (hears_more || hears_turn) continue;
      if (first) at_front(channel);
      milliseconds look_again = std::min(next_look(*acquired), policy_.longest_look);
      // Nobody can tell us anything: listen again soon.
      if (!channel.listening() && !channel.refused()) look_again = std::min(look_again, kListenAgain);
      const bool unannounced = acquired->ahead.value_or(0) == 0 && acquired->holder && acquired->holder->by_set;
      const Until look = end_.at_most(look_again);
      heard = RLOCK_TRY(unannounced ? wait_for_deletion(channel, *acquired, look) : channel.wait(look));
    }
  }

  // In a cluster a channel that is not in the lock's slot cannot be listened to.
  Result<bool> hear_turn(WaiterChannel& channel, const Acquired& found) {
    const Wakeup& wakeup = request_.name.wakeup();
    const bool told = wakeup.way == Wakeup::Way::publish && !client_.address().slots;
    if (told) return channel.hear_turn(wakeup.where, wakeup.what, exchange());
    return channel.hear_turn(found.other_channel, "", exchange());
  }

  // Another program deletes its string without a word. One short question finds that, which writes nothing; a look says
  // what is there instead, and that this waiter lives.
  Result<WaiterChannel::Heard> wait_for_deletion(WaiterChannel& channel, const Acquired& found, const Until& look) {
    if (std::exchange(polled_, found.holder->owner) != found.holder->owner) pause_ = kFirstPause;
    milliseconds left = std::min(found.expires_in.value_or(kLongestPause), kLongestPause);
    for (;;) {
      const Until pause = look.at_most(std::min(pause_, left + 1ms));
      const auto heard = RLOCK_TRY(channel.wait(pause));
      if (heard == WaiterChannel::Heard::granted || !pause.over() || look.over()) return heard;
      pause_ = std::min(2 * pause_, kLongestPause);
      const auto reply = client_.call({"PTTL", request_.name.text()}, exchange());
      const auto ttl = reply ? reply->as_number() : std::nullopt;
      if (!ttl || *ttl < -1) return WaiterChannel::Heard::look;
      left = *ttl < 0 ? kLongestPause : milliseconds(std::min<long long>(*ttl, kLongestPause.count()));
    }
  }

  // A string without a time may be left from a program that has died: then nobody deletes it.
  bool never_free(const Acquired& found) const {
    return found.outcome == Acquired::Outcome::held && !policy_.limit && !found.expires_in && found.holder &&
           found.holder->by_set;
  }

  // Somebody who says how long to wait means that, whatever there is to wait for.
  bool may_come_back(const Error& error) const {
    return error.code == Error::Code::unavailable && policy_.limit && !end_.over();
  }

  // Once for each outage: who waits for a holder that is slow waits for something else than we do.
  void say_away(const Error& error, TimePoint give_up) {
    if (std::exchange(away_, true)) return;
    log::warning(request_.name.display() + ": " + error.message + "; still waiting, for " +
                 rough_duration(until(give_up)) + " at most if it does not answer");
  }

  TimePoint meanwhile() const { return looked_ && policy_.meanwhile ? policy_.meanwhile() : TimePoint::max(); }

  void at_front(WaiterChannel& channel) {
    if (!policy_.at_front) return;
    policy_.at_front({lock(), request_.owner, request_.hold(), "", request_.lease, {}}, [&] { channel.end(); });
  }

  static milliseconds next_look(const Acquired& found) {
    if (found.ahead == 0) return look_after(found.expires_in);
    if (!found.ahead) return look_after(found.expires_in) + milliseconds(random_below(20));
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
      if (auto released = verbs_.release(ReleaseRequest{lock(), *owner, hold_id}, soon); !released) {
        log::debug(released.error().message);
      }
    }
  }

  Lock lock() const { return {request_.name, request_.mode.layout()}; }
  Until exchange() const { return Until{TimePoint::max(), policy_.interrupt}.at_most(policy_.exchange); }

  Verbs& verbs_;
  redis::Client& client_;
  AcquireRequest request_;
  const WaitPolicy& policy_;
  const OnHeld& on_held_;
  Until end_{TimePoint::max(), policy_.interrupt};
  bool queued_ = false;
  std::string polled_;  // the value of the string that is asked for
  milliseconds pause_ = kFirstPause;
  bool looked_ = false;  // and it was held
  bool away_ = false;    // the server; that has been said
  bool moved_ = false;   // the server that has just granted it is not the master any more
};

}  // namespace

Result<Acquired> acquire_or_wait(Verbs& verbs, redis::Client& client, AcquireRequest request, const WaitPolicy& policy,
                                 const OnHeld& on_held) {
  return Waiter(verbs, client, std::move(request), policy, on_held).run();
}

}  // namespace rlock::lock
