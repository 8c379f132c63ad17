// SPDX-License-Identifier: MIT
#include "base/log.h"
#include "lock/acquire.h"
#include "lock/waiter_life.h"

namespace rlock::lock {
namespace {

using Action = WaiterAction;
using Actions = WaiterLife::Actions;

class Waiter {
 public:
  Waiter(Verbs& verbs, redis::Client& client, AcquireRequest request, const WaitPolicy& policy, const OnHeld& on_held)
      : verbs_(verbs), client_(client), request_(std::move(request)), policy_(policy), on_held_(on_held) {}

  Result<Acquired> run() {
    auto first = ask();
    if (moved_) first = ask();
    auto acquired = go_on_from(std::move(first));
    if (!as<Hold>(acquired) && (joined_ || executed_ || (!acquired && acquired.error().maybe_executed))) leave();
    return acquired;
  }

 private:
  // Waits, if the first answer is a reason to.
  Result<Acquired> go_on_from(Result<Acquired> answer) {
    if (const Held* held = as<Held>(answer)) {
      if (life_.never_free(*held)) return Immortal{*held->holder};
      if (!end_.over()) return wait();
      RLOCK_TRY(on_held_(*held));
      return answer;
    }
    const bool unreachable = !answer && answer.error().code == Error::Code::unavailable;
    if (!unreachable || !policy_.limit || end_.over()) return answer;
    // The user's limit applies to waiting for the server, too.
    executed_ = answer.error().maybe_executed;
    warn_unreachable(answer.error(), end_.deadline);
    return wait();
  }

  Until next() const { return policy_.next(end_); }

  WaiterPlan plan() const {
    const auto random = [](milliseconds most) {
      return milliseconds(random_below(static_cast<std::uint64_t>(most.count())));
    };
    return {.end = end_.deadline,
            .lease = request_.lease,
            .longest_look = policy_.longest_look,
            .queueing = policy_.queueing,
            .releases = request_.lock().channel(),
            .random = random};
  }

  // Behind Sentinels, a grant counts only if they still name its server, as they would for a job that starts now. An
  // old master keeps the grant until it takes over the new master's data: it is sent no release, because this owner id
  // goes on waiting at the new master.
  Result<Acquired> ask() {
    moved_ = false;
    auto acquired = verbs_.acquire(request_, BootClock::now(), next());
    if (!as<Hold>(acquired)) return acquired;
    using Standing = redis::Client::Standing;
    auto standing = client_.standing(next());
    if (standing && (*standing == Standing::master || *standing == Standing::by_few)) return acquired;
    moved_ = standing && *standing == Standing::another;
    const std::string named = moved_ ? ": the Sentinels name another master now"
                                     : ": no more than half of the Sentinels answer, and they name another master";
    Error error =
        standing ? Error{Error::Code::unavailable, request_.name.display() + named} : std::move(standing).error();
    error.maybe_executed = true;
    return std::unexpected(std::move(error));
  }

  Result<Acquired> wait() {
    for (Actions actions = life_.begin(BootClock::now());;) {
      std::optional<Actions> next;
      for (const Action& action : actions) {
        if (action.kind == Action::Kind::end) return std::move(answer_);
        next = RLOCK_TRY(perform(action));
        if (answer_ && !as<Held>(answer_)) return std::move(answer_);
        if (next) break;
      }
      actions = *std::move(next);
    }
  }

  // The actions that follow from its result; none: go on with the next one. Errors: the wait is over. Has a case for
  // each action.
  Result<std::optional<Actions>> perform(const Action& action) {
    switch (action.kind) {
      case Action::Kind::listen: return listen();
      case Action::Kind::hear: return hear(subscriber_->also(action.channel, next()));
      case Action::Kind::unhear: return hear(subscriber_->no_longer(action.channel, next()));
      case Action::Kind::disconnect:
        subscriber_.reset();
        client_.disconnect();
        break;
      case Action::Kind::ask: return ask_for_life();
      case Action::Kind::tell_unreachable: warn_unreachable(answer_.error(), action.until); break;
      case Action::Kind::tell_moved:
        log::warning(answer_.error().message + "; waiting there");
        subscriber_.reset();
        break;
      case Action::Kind::prepare: prepare(); break;
      case Action::Kind::wait: return wait_for_news(Until{action.until, policy_.interrupt});
      case Action::Kind::poll: return poll();
      case Action::Kind::end: break;
    }
    return std::nullopt;
  }

  void prepare() {
    if (!policy_.at_front) return;
    policy_.at_front(request_.granted(request_.owner, "", {}), [this] { subscriber_.reset(); });
  }

  Result<std::optional<Actions>> listen() {
    std::vector<std::string> channels = policy_.other_channels;
    channels.insert(channels.begin(), request_.name.grant_channel_prefix() + request_.owner.text());
    auto opened = redis::Subscriber::open(client_.address(), channels, next());
    if (opened) {
      subscriber_.emplace(std::move(*opened));
      return life_.listens();
    }
    if (opened.error().code == Error::Code::interrupted) return std::unexpected(std::move(opened).error());
    if (opened.error().code != Error::Code::denied) return life_.silent();
    log::warning(opened.error().message + "; not in the queue, but asking for the lock every 5s");
    return life_.refused();
  }

  // After listening or no longer listening on one more channel.
  Result<std::optional<Actions>> hear(Result<void> asked) {
    if (asked) return std::nullopt;
    return lost(std::move(asked).error());
  }

  Result<std::optional<Actions>> lost(Error error) {
    if (error.code == Error::Code::interrupted) return std::unexpected(std::move(error));
    log::debug(error.message + "; listening again");
    subscriber_.reset();
    return life_.lost(BootClock::now());
  }

  Result<std::optional<Actions>> ask_for_life() {
    request_.queueing = life_.place();
    joined_ = joined_ || request_.queueing;
    request_.outside = joined_ && !request_.queueing;
    answer_ = ask();
    if (moved_) return life_.moved(BootClock::now());
    if (!answer_) return life_.failed(answer_.error().code, BootClock::now());
    if (std::exchange(unreachable_, false)) log::warning(request_.name.display() + ": the server answers again");
    const Held* held = as<Held>(answer_);
    if (held && life_.never_free(*held)) answer_ = Immortal{*held->holder};
    if (!as<Held>(answer_)) return std::nullopt;
    const std::string by = client_.server();
    const bool strayed = subscriber_ && !by.empty() && subscriber_->server() != by;
    RLOCK_TRY(on_held_(*held));
    looked_ = true;
    return life_.held(*held, strayed, BootClock::now());
  }

  Result<std::optional<Actions>> wait_for_news(const Until& until) {
    do {
      const bool more_to_do = looked_ && policy_.meanwhile;
      const Until soon = until.at_most(more_to_do ? RLOCK_TRY(policy_.meanwhile()) : TimePoint::max());
      if (auto news = RLOCK_TRY(hear_until(soon))) return news;
    } while (!until.over());
    return life_.time(BootClock::now());
  }

  // Returns nothing if there was no message.
  Result<std::optional<Actions>> hear_until(const Until& until) {
    if (!subscriber_) {
      if (wait_for(-1, 0, until) == WaitEnd::interrupted) return interrupted();
      return std::nullopt;
    }
    auto message = subscriber_->wait(until);
    if (!message && message.error().code != Error::Code::denied) return lost(std::move(message).error());
    if (!message && !std::exchange(warned_, true)) {
      log::warning(message.error().message +
                   "; asking every 5s instead, so releases by other programs are noticed late");
    }
    if (!message || !*message) return std::nullopt;
    if (policy_.on_message) RLOCK_TRY(policy_.on_message(**message));
    return life_.message((*message)->text, BootClock::now());
  }

  Result<std::optional<Actions>> poll() {
    const auto reply = client_.call({"PTTL", request_.name.text()}, next());
    return life_.polled(reply ? reply->as_number() : std::nullopt, BootClock::now());
  }

  // Once for each outage, so that the user does not take this for a wait for the holder.
  void warn_unreachable(const Error& error, TimePoint give_up) {
    if (std::exchange(unreachable_, true)) return;
    log::warning(request_.name.display() + ": " + error.message + "; still waiting, for at most " +
                 rough_duration(until(give_up)) + " if it does not answer");
  }

  // Removes everything of an attempt that was given up. The limit is short, because the user waits; if it fails, others
  // notice that nobody listens here, or the grant expires.
  void leave() {
    const Until soon = Until{}.at_most(500ms);
    for (const OwnerId& owner : request_.owners()) {
      const auto released = verbs_.release(ReleaseRequest{request_.lock(), owner, request_.hold()}, soon);
      if (!released) log::debug(released.error().message);
    }
  }

  Verbs& verbs_;
  redis::Client& client_;
  AcquireRequest request_;
  const WaitPolicy& policy_;
  const OnHeld& on_held_;
  const Until end_ = policy_.end();
  WaiterLife life_{plan()};
  std::optional<redis::Subscriber> subscriber_;
  Result<Acquired> answer_;   // the last one
  bool executed_ = false;     // the first request, perhaps
  bool joined_ = false;       // the queue
  bool looked_ = false;       // and it was held
  bool unreachable_ = false;  // the server is unreachable, and the user was told
  bool moved_ = false;        // the server that has just granted it is no longer the master
  bool warned_ = false;       // that a channel is refused
};

}  // namespace

Result<Acquired> acquire_or_wait(Verbs& verbs, redis::Client& client, AcquireRequest request, const WaitPolicy& policy,
                                 const OnHeld& on_held) {
  return Waiter(verbs, client, std::move(request), policy, on_held).run();
}

}  // namespace rlock::lock
