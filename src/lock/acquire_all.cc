// SPDX-License-Identifier: MIT
#include "lock/acquire.h"

#include <poll.h>

#include <atomic>

#include "base/log.h"
#include "lock/waiter_life.h"

namespace rlock::lock {
namespace {

constexpr milliseconds kPause = 100ms;
// A healthy replica has it within a round trip; disks are written once a second (appendfsync everysec).
constexpr milliseconds kAcknowledgement = 1500ms;

class Acquisition {
 public:
  Acquisition(Verbs& verbs, redis::Client& client, const std::vector<AcquireRequest>& requests,
              const WaitPolicy& policy, const OnHeldOf& on_held)
      : verbs_(verbs), client_(client), requests_(requests), policy_(policy), on_held_(on_held) {}

  Result<Taken> run() {
    for (;;) {
      auto taken = take_each();
      if (taken && !taken->holds.empty()) return taken;
      give_back();
      if (never_) return *std::move(never_);
      if (taken || !std::exchange(again_, false)) return taken;
      log::write(std::exchange(said_, true) ? log::Level::debug : log::Level::warning,
                 taken.error().message + "; starting again");
      // An error that comes at once must not keep the server busy.
      if (wait_for(-1, 0, Until{TimePoint::max(), policy_.interrupt}.at_most(kPause)) == WaitEnd::interrupted) {
        return interrupted();
      }
    }
  }

 private:
  Result<Taken> take_each() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      auto acquired = RLOCK_TRY(take(i));
      Hold* hold = std::get_if<Hold>(&acquired);
      if (!hold) return Taken{{}, i, std::move(acquired)};
      holds_.push_back(std::move(*hold));
      RLOCK_TRY(keep_if_due());
    }
    // We may have waited for the server without being told, and a renewal may have failed in the meantime.
    const bool doubtful = holds_.size() > 1 && (waited_ || is_due());
    if (doubtful || policy_.replicas > 0) RLOCK_TRY(or_again(keep(true)));
    if (policy_.replicas > 0) RLOCK_TRY(or_again(expect_acknowledgement()));
    return Taken{std::exchange(holds_, {}), 0, {}};
  }

  Result<Acquired> take(std::size_t index) {
    AcquireRequest request = requests_[index];
    // Not that of an earlier attempt, because a release for it may still be on its way.
    request.owner = owner_;
    if (request.heir) request.hold_id = random_uuid();
    WaitPolicy policy = policy_;
    if (policy.limit) policy.limit = until(end_.deadline);
    if (requests_.size() > 1) policy.at_front = {};  // this will not be the only hold
    if (!holds_.empty()) policy.longest_look = std::min(policy.longest_look, policy.renew_every);
    for (const Hold& hold : holds_) policy.other_channels.push_back(hold.name().control_channel());
    // Other waiters can ask for a lock that we have, as they can ask a running job.
    policy.on_message = [this](const redis::Message& message) {
      const auto asked = asked_to_stop(message, holds_);
      return asked ? gives_up(asked->which, AskedFor{asked->by}) : Result<void>();
    };
    return acquire_or_wait(verbs_, client_, request, policy, [&](const Held& found) -> Result<void> {
      if (std::string why = on_held_(index, found); !why.empty()) return gives_up(index, Endless{why});
      waited_ = true;
      return keep_if_due();
    });
  }

  // Ends the wait.
  Result<void> gives_up(std::size_t index, Acquired why) {
    never_ = Taken{{}, index, std::move(why)};
    return fail(Error::Code::wrong_kind, "");
  }

  // REQUIRES: there are holds.
  bool is_due() const { return BootClock::now() >= oldest(holds_) + policy_.renew_every; }

  // An unreachable server may come back while there is time.
  Result<void> or_again(Result<void> result) {
    if (!result && result.error().code == Error::Code::unavailable) again_ = !end_.over();
    return result;
  }

  Result<void> keep_if_due() { return holds_.empty() || !is_due() ? Result<void>{} : keep(false); }

  // Renews what we have. An unreachable server may come back, unless this is the `final` renewal, which finds out what
  // was lost during the wait before anyone relies on it.
  Result<void> keep(bool final) {
    const auto renewed = verbs_.renew(holds_, holds_.front().lease, policy_.next(end_));
    if (!renewed && renewed.error().code == Error::Code::unavailable && !final) {
      log::debug(renewed.error().message + "; renewing later");
      return {};
    }
    RLOCK_TRY(renewed);
    if (renewed->outcome != RenewOutcome::renewed) {
      const std::string lost = holds_[renewed->at].name().display() + ": lost while waiting for others";
      return or_again(fail(Error::Code::unavailable, lost));
    }
    for (Hold& hold : holds_) hold.sent = renewed->sent;
    return {};
  }

  // Replicas acknowledge what one connection has written, so the holds were just renewed over these connections. WAIT
  // does not rule out a loss (redis.io, WAIT), because a replica that lacks the lock may still become the master.
  Result<void> expect_acknowledgement() {
    const milliseconds limit = std::min<milliseconds>(policy_.exchange / 2, kAcknowledgement);
    const std::string wanted = std::to_string(policy_.replicas), time = std::to_string(limit.count());
    std::vector<std::string> names;
    for (const Hold& hold : holds_) names.push_back(hold.name().text());
    const auto replies = client_.call_over_same({"WAIT", wanted, time}, names, policy_.next(end_));
    if (!replies && replies.error().code == Error::Code::protocol) {
      return fail(Error::Code::config, replies.error().message + "; --wait-replicas needs a server with WAIT");
    }
    RLOCK_TRY(replies);
    long long acknowledged = policy_.replicas;
    for (const redis::Reply& reply : *replies) {
      acknowledged = std::min(acknowledged, reply.as_number().value_or(0));
    }
    if (acknowledged >= policy_.replicas) return {};
    return fail(Error::Code::unavailable, std::to_string(acknowledged) + " of " + wanted +
                                              " replicas have acknowledged the lock, so it was given back");
  }

  void give_back() {
    const Until soon = Until{}.at_most(1s);
    for (const Hold& hold : holds_) {
      if (auto released = verbs_.release(ReleaseRequest{hold.lock, hold.owner, hold.id}, soon); !released)
        log::debug(released.error().message);
    }
    holds_.clear();
    owner_ = OwnerId::fresh_for_slots(requests_.front().mode.taken);
  }

  Verbs& verbs_;
  redis::Client& client_;
  const std::vector<AcquireRequest>& requests_;
  WaitPolicy policy_;
  const OnHeldOf& on_held_;
  const Until end_ = policy_.end();
  OwnerId owner_ = OwnerId::fresh_for_slots(requests_.front().mode.taken);
  std::vector<Hold> holds_;
  bool waited_ = false;
  std::optional<Taken> never_;  // we give up: the wait would never end, or others want what we have
  bool again_ = false;          // one was lost while we waited for another, or too few replicas have them
  bool said_ = false;           // that it starts again
};

constexpr milliseconds kFirstTry = 20ms, kLongestTry = 640ms;  // pauses between attempts at a contested lock
constexpr milliseconds kAfterWakeup = 30ms;                    // because all waiters hear of a release at once
constexpr int kEnoughTries = 8;                                // until a contested lock is reported as such
constexpr milliseconds kTellAgain = 100ms;  // between attempts to give back stray votes during a wait
constexpr milliseconds kOvertime = 200ms;   // for the last attempt, after the end of the wait

// Listens for releases of the locks, on each server that allows it.
class Releases {
 public:
  Releases(const std::vector<redis::Address>& addresses, const std::vector<AcquireRequest>& requests)
      : servers_(addresses.size()), news_(servers_ * requests.size()) {
    std::vector<std::string> channels;
    for (const auto& request : requests) channels.push_back(request.lock().channel());
    const milliseconds connect = addresses.front().server.reads_password_by_process() ? 10s : 2s;
    const auto heard = [this, channels](std::size_t server, const redis::Message& message) {
      const auto lock = std::ranges::find(channels, message.channel);
      if (lock == channels.end()) return true;
      news_[servers_ * static_cast<std::size_t>(lock - channels.begin()) + server] = true;
      set_event(heard_);
      return true;
    };
    auto started = redis::Listener::start({addresses, channels, connect, requests.front().name.display(), heard});
    if (!started) log::debug(started.error().message);
    if (started) listener_ = *std::move(started);
  }

  // Readable once there was a message, until take().
  int fd() const { return heard_.get(); }
  // Which servers have sent one about the lock of that index.
  std::vector<bool> take(std::size_t lock) {
    clear_event(heard_);
    std::vector<bool> where;
    for (std::atomic<bool>& one : news_) where.push_back(one.exchange(false));
    const auto first = where.begin() + static_cast<std::ptrdiff_t>(servers_ * lock);
    return {first, first + static_cast<std::ptrdiff_t>(servers_)};
  }

 private:
  UniqueFd heard_ = make_event().value_or(UniqueFd());
  std::size_t servers_;
  std::vector<std::atomic<bool>> news_;  // by the lock and the server
  std::unique_ptr<redis::Listener> listener_;
};

// Takes all of the requested locks, or none, in repeated attempts.
class QuorumAcquisition {
 public:
  QuorumAcquisition(Servers& servers, const std::vector<AcquireRequest>& requests, const WaitPolicy& policy,
                    const OnHeldOf& on_held)
      : quorum_(*servers.quorum()),
        addresses_(servers.addresses()),
        requests_(requests),
        policy_(policy),
        on_held_(on_held) {}

  Result<Taken> run() {
    for (;;) {
      auto taken = attempt();
      if (!taken) {
        RLOCK_TRY(wait_for_servers(taken.error()));
        continue;
      }
      Held* found = std::get_if<Held>(&taken->refusal);
      if (!taken->holds.empty() || !found) return taken;
      const bool contested = !found->contested.empty();
      const bool again = contested && is_worth_a_try();
      if (again) found->contested.clear();
      if (!contested) contests_ = 0;
      if (const std::string never = answered(taken->refused, *found, again); !never.empty()) {
        return Taken{{}, taken->refused, Endless{never}};
      }
      // Even without a wait, a contested lock is tried again: maybe only other attempts are in the way.
      if (end_.over() && !(again && policy_.limit == 0ms)) return taken;
      RLOCK_TRY(contested ? pause(pause_after(contests_)) : wait_for_release(taken->refused, *found));
    }
  }

 private:
  // Errors: interrupted; `error`, if the wait is over.
  Result<void> wait_for_servers(const Error& error) {
    if (!may_return(error)) return std::unexpected(error);
    if (!std::exchange(unreachable_, true)) {
      log::warning(names_of(requests_) + ": " + error.message + "; still waiting");
    }
    return pause(pause_after(++absences_));
  }

  // Whether another attempt may decide a lock that is contested again.
  bool is_worth_a_try() {
    // A server that does not answer makes each attempt long, and is unlikely to decide the next one.
    const bool slow = !errors_in(quorum_.last_votes()).empty() && BootClock::now() >= started_ + policy_.exchange;
    return ++contests_ < kEnoughTries && !slow;
  }

  // The grant of all, or why there is none; then nothing of the attempt is left.
  Result<Taken> attempt() {
    quorum_.begin_attempt();
    std::vector<Hold> holds;
    const OwnerId owner = OwnerId::fresh();
    const TimePoint sent = BootClock::now();
    for (std::size_t which = 0; which < requests_.size(); ++which) {
      AcquireRequest request = requests_[which];
      request.owner = owner;
      if (request.heir) request.hold_id = random_uuid();
      auto acquired = quorum_.acquire(request, sent, exchange());
      if (const Hold* hold = as<Hold>(acquired)) {
        holds.push_back(*hold);
        continue;
      }
      if (const Held* held = as<Held>(acquired); held && held->contested.empty()) note_where_held(request, *held);
      quorum_.undo();
      if (!acquired) return std::unexpected(std::move(acquired).error());
      return Taken{{}, which, *std::move(acquired)};
    }
    if (auto fine = quorum_.confirm(holds, sent, exchange()); !fine) {
      quorum_.undo();
      return std::unexpected(std::move(fine).error());
    }
    return Taken{std::move(holds), 0, {}};
  }

  // The servers have answered that it is not free. `untold`: do not report this before the next attempt. Returns why
  // the wait can never end; "": it may.
  std::string answered(std::size_t which, const Held& found, bool untold) {
    if (std::exchange(unreachable_, false))
      log::warning(names_of(requests_) + ": a majority of the servers answers again");
    absences_ = 0;
    last_contact_ = BootClock::now();
    if (untold) return "";
    looked_ = true;
    return on_held_(which, found);
  }

  // The user's limit applies to waiting for the servers, too.
  bool may_return(const Error& error) const {
    if (error.code != Error::Code::unavailable) return false;
    if (policy_.limit) return !end_.over();
    return last_contact_ && BootClock::now() < *last_contact_ + requests_.front().lease;
  }

  static milliseconds pause_after(int tries) { return std::min(kFirstTry * (1 << std::min(tries, 10)), kLongestTry); }

  Result<TimePoint> meanwhile() const { return looked_ && policy_.meanwhile ? policy_.meanwhile() : TimePoint::max(); }

  // For a random time, at most `most`.
  Result<void> pause(milliseconds most) {
    const milliseconds span(1 + static_cast<long long>(random_below(static_cast<std::uint64_t>(most.count()))));
    const Until until = (policy_.limit == 0ms ? Until{TimePoint::max(), policy_.interrupt} : end_).at_most(span);
    do {
      if (wait_for(-1, 0, until.at_most(RLOCK_TRY(meanwhile()))) == WaitEnd::interrupted) return interrupted();
    } while (!until.over());
    return {};
  }

  // Until a server says that the lock was released, or the lease should have ended. Releases of the others mean
  // nothing: waiters for several take those that are free, and give them back.
  Result<void> wait_for_release(std::size_t lock, const Held& found) {
    if (!releases_) {
      releases_.emplace(addresses_, requests_);
      // Ask again soon, because a release may have come before we listened.
      return pause(pause_after(2));
    }
    const Until until = end_.at_most(std::min(look_after(found.expires_in), policy_.longest_look));
    while (!until.over()) {
      const Until look = quorum_.has_strays() ? until.at_most(kTellAgain) : until;
      const WaitEnd end = wait_for(releases_->fd(), POLLIN, look.at_most(RLOCK_TRY(meanwhile())));
      if (end == WaitEnd::interrupted) return interrupted();
      if (quorum_.has_strays() && look.over()) quorum_.give_back_strays();
      if (end != WaitEnd::ready || !frees_a_vote(releases_->take(lock))) continue;
      RLOCK_TRY(pause(kAfterWakeup));
      releases_->take(lock);
      return {};
    }
    return pause(kAfterWakeup);
  }

  // Readers are many, and a server that has not answered may have the same holder. One that has granted it has none.
  void note_where_held(const AcquireRequest& request, const Held& found) {
    held_there_.assign(quorum_.size(), true);
    const bool plain = request.mode.layout() == Layout::plain;
    for (std::size_t i = 0; i < quorum_.size(); ++i) {
      const Result<Vote>& vote = quorum_.last_votes()[i];
      const bool another = vote && plain && holder_id(vote->held()) != holder_id(&found);
      if (another || (vote && vote->hold())) held_there_[i] = false;
    }
  }

  // Attempts that fail publish releases, too. If all waiters reacted to them, they would take that vote for a moment
  // and wake the others by giving it back, and the holder would have no chance to take it.
  bool frees_a_vote(const std::vector<bool>& heard) const {
    for (std::size_t i = 0; i < heard.size(); ++i) {
      if (heard[i] && held_there_[i]) return true;
    }
    return false;
  }

  Until exchange() const {
    const bool ends = policy_.limit && *policy_.limit > 0ms;
    return ends ? policy_.next().at_most(end_.deadline + kOvertime) : policy_.next();
  }

  Quorum& quorum_;
  std::vector<redis::Address> addresses_;
  const std::vector<AcquireRequest>& requests_;
  const WaitPolicy& policy_;
  const OnHeldOf& on_held_;
  const Until end_ = policy_.end();
  std::vector<bool> held_there_;  // which servers name the holder that a majority has named last
  int contests_ = 0, absences_ = 0;
  const TimePoint started_ = BootClock::now();
  std::optional<TimePoint> last_contact_;
  std::optional<Releases> releases_;
  bool looked_ = false;       // and it was held
  bool unreachable_ = false;  // too few servers answer, and the user was told
};

}  // namespace

std::string names_of(const std::vector<AcquireRequest>& requests) {
  return joined(requests, ", ", [](const AcquireRequest& request) { return request.name.display(); });
}

Result<Taken> acquire_all(Servers& servers, const std::vector<AcquireRequest>& requests, const WaitPolicy& policy,
                          const OnHeldOf& on_held) {
  if (servers.quorum()) return QuorumAcquisition(servers, requests, policy, on_held).run();
  return Acquisition(*servers.operator->(), servers.client(0), requests, policy, on_held).run();
}

}  // namespace rlock::lock
